import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import ConfigError
from kraftlog.offsets import Offset
from kraftlog.types import TopicPartition
from spark_connector.offsets import (
    Range,
    from_json,
    is_time,
    parse_assignment,
    parse_places,
    parse_timestamp,
    parse_timestamps,
    share,
    share_bytes,
    split,
    to_json,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)

sizes = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 20)),
    st.integers(0, 2**62),
    max_size=8,
)


def test_kafkas_json_and_our_grammar() -> None:
    places = parse_places("startingOffsets", '{"a": {"0": 23, "1": -2}, "b": {"0": "@-1h"}}')
    found = places.of([A0, A1, B0])
    assert found[A0] == Offset.at(23)
    assert found[A1] == Offset.START
    assert is_time(found[B0])
    assert places.has_earliest
    assert not places.has_latest
    named = parse_places("startingOffsets", "a:0=23,a:1=earliest,b:0=@-1h")
    assert named.of([A0, A1, B0]) == found


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("earliest", Offset.START),
        ("latest", Offset.END),
        ("LATEST", Offset.END),
        ("start", Offset.START),
        ("-10", Offset.before_end(10)),
        ("+10", Offset.after_start(10)),
        ("1200", Offset.at(1200)),
        ("@1769817600000", Offset.at_time(1769817600000)),
    ],
)
def test_one_place_for_all(text: str, offset: Offset) -> None:
    assert parse_places("startingOffsets", text).of([A0, B0]) == {A0: offset, B0: offset}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ealiest", "'ealiest' is no offset"),
        ("10:20", "'10:20' is a range"),
        ("a:0=ealiest", "'ealiest' is no offset"),
        ("0=5", "names partition 0 of no topic"),
        ("{}", "names no partitions"),
        ("{broken", "names no partitions"),
        ('{"a": {"x": 1}}', "names the partition 'x'"),
        ('{"a": {"0": -3}}', "has the offset -3"),
        ('{"a": {"0": 1.5}}', "has the offset 1.5"),
        ('{"a": {"0": true}}', "has the offset True"),
    ],
)
def test_what_is_no_offset(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_places("startingOffsets", text)


def test_all_partitions_have_to_be_named() -> None:
    places = parse_places("startingOffsets", '{"a": {"0": 1}}')
    with pytest.raises(ConfigError, match="startingOffsets leaves out a-1"):
        places.of([A0, A1])
    with pytest.raises(ConfigError, match="startingOffsets names a-0"):
        places.of([])


def test_times() -> None:
    assert parse_timestamp("startingTimestamp", "1000").of([A0]) == {A0: Offset.at_time(1000)}
    each = parse_timestamps("startingOffsetsByTimestamp", '{"a": {"0": 7}}')
    assert each.of([A0]) == {A0: Offset.at_time(7)}
    with pytest.raises(ConfigError, match="milliseconds"):
        parse_timestamp("startingTimestamp", "yesterday")
    with pytest.raises(ConfigError, match="milliseconds"):
        parse_timestamps("startingOffsetsByTimestamp", '{"a": {"0": -7}}')


def test_an_assignment() -> None:
    assert parse_assignment('{"b": [0], "a": [1, 0, 0]}') == (A0, A1, B0)
    for text in ("", "[]", "{}", '{"a": 0}', '{"a": ["0"]}', '{"a": [-1]}'):
        with pytest.raises(ConfigError, match="assign"):
            parse_assignment(text)


@given(sizes)
def test_a_checkpoint_is_always_written_the_same(offsets: dict[TopicPartition, int]) -> None:
    written = json.dumps(to_json(offsets))
    assert from_json(json.loads(written)) == offsets
    assert json.dumps(to_json(dict(reversed(offsets.items())))) == written


@given(sizes, st.integers(1, 2**62))
def test_a_limit_is_shared_out(rows: dict[TopicPartition, int], limit: int) -> None:
    shared = share(rows, limit)
    busy = [place for place in rows if rows[place]]
    assert all(0 <= shared[place] <= rows[place] for place in rows)
    assert all(shared[place] > 0 for place in busy), "nobody starves"
    assert sum(shared.values()) <= limit + len(busy)
    assert sum(rows.values()) > limit or shared == rows


def test_bytes_are_shared_out_by_rows() -> None:
    rows, of_rows = {A0: 100, A1: 50}, {A0: 1_000, A1: 1_000}
    assert share_bytes(rows, of_rows, 1_000) == {A0: 50, A1: 25}
    assert share_bytes(rows, of_rows, 5_000) == rows
    assert share_bytes({A0: 0, A1: 5}, {A1: 5_000}, 1) == {A0: 0, A1: 1}


ranges = st.lists(
    st.builds(
        lambda partition, start, size: Range(TopicPartition("a", partition), start, start + size),
        st.integers(0, 50),
        st.integers(0, 2**50),
        st.integers(0, 500),
    ),
    max_size=6,
    unique_by=lambda each: each.place,
)


@given(ranges, st.none() | st.integers(1, 40), st.none() | st.integers(1, 600))
def test_tasks_cover_every_offset_once(
    wanted: list[Range], least: int | None, most: int | None
) -> None:
    parts = split(wanted, least, most)
    covered = sorted((p.place, n) for p in parts for n in range(p.start, p.end))
    assert covered == sorted((r.place, n) for r in wanted for n in range(r.start, r.end))
    assert all(part.size > 0 for part in parts)
    assert most is None or all(part.size <= most for part in parts)


def test_one_partition_for_many_tasks() -> None:
    assert len(split([Range(A0, 0, 100)], 4, None)) == 4
    assert [part.size for part in split([Range(A0, 0, 90), Range(A1, 0, 10)], 10, None)] == [
        *[10] * 9,
        10,
    ]
    assert len(split([Range(A0, 0, 100), Range(A1, 0, 0)], None, 30)) == 4
