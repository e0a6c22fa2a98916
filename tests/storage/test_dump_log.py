"""Segments: what is shown of a sound one, and where a damaged one is said to be damaged."""

import struct
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.record_batch import HEADER_BYTES, Record, encode_batch, encode_values
from storage.dump_events import Finding, Options, Row, Severity, log_file
from storage.dump_log import Place, dump_log
from storage.model_disk import ModelDisk
from tests.storage.dumps import (
    FIRST,
    SECOND,
    batches_of,
    cut,
    damage,
    ends,
    events,
    findings,
    flip,
    position_of,
    rows,
    write_log,
)
from tests.storage.logs import TIME_MS

DEEP = Options(deep=True)
VERIFY = Options(verify=True)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The first segment of a log; offsets 0 to 23, two in each batch."""
    return write_log(tmp_path) / f"{FIRST}.log"


def offsets(shown: list[Row]) -> list[object]:
    return [row.fields["baseOffset"] for row in shown]


def values(shown: list[Row]) -> list[object]:
    return [record["value"] for row in shown for record in row.records or ()]


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


# -- a sound file


def test_batches_are_shown_with_position_and_codec(log: Path) -> None:  # R27, R28
    shown = rows(events(log))
    sizes = [batch.size for batch in batches_of(log)]
    assert offsets(shown) == list(range(0, 24, 2))
    assert [row.fields["position"] for row in shown] == [sum(sizes[:n]) for n in range(12)]
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    assert [row.fields["compresscodec"] for row in shown] == (codecs * 3)[:12]
    assert all(row.records is None for row in shown)


def test_deep_shows_the_records_of_every_codec(log: Path) -> None:  # R28
    expected = [text for number in range(12) for text in (f"value {number}", "AP8=")]
    assert values(rows(events(log, DEEP))) == expected


def test_the_end_counts_what_was_read(log: Path) -> None:
    (end,) = ends(events(log))
    assert end.facts == {
        "batches": 12,
        "records": 24,
        "nextOffset": 24,
        "maxTimestamp": TIME_MS + 11,
        "gaps": 0,
        "bytes": log.stat().st_size,
    }


def test_a_range_shows_the_batches_that_touch_it_and_the_records_in_it(log: Path) -> None:
    found = events(log, Options(deep=True, from_offset=5, to_offset=9))
    assert offsets(rows(found)) == [4, 6, 8]
    shown = [record["offset"] for row in rows(found) for record in row.records or ()]
    assert shown == [5, 6, 7, 8]
    assert ends(found)[0].facts["batches"] == 12


def test_verify_shows_no_rows(log: Path) -> None:
    found = events(log, Options(verify=True, deep=True))
    assert rows(found) == []
    assert findings(found) == []


def test_the_gaps_of_a_compacted_log_are_counted_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    batches = [encode_values([b"v"], timestamp=1, base_offset=offset) for offset in (0, 5, 6, 9)]
    path.write_bytes(b"".join(batches))
    found = events(path)
    assert findings(found) == []
    assert ends(found)[0].facts["gaps"] == 2


def test_an_empty_segment_is_sound(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(b"")
    assert findings(events(path, VERIFY)) == []


def test_a_metadata_snapshot_is_a_file_of_batches(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000042-0000000007.checkpoint"
    path.write_bytes(encode_values([b"image"], timestamp=1, base_offset=0))
    found = events(path, DEEP)
    assert values(rows(found)) == ["image"]
    assert findings(found) == []


# -- damage


def test_a_wrong_crc_is_named_and_reading_goes_on(log: Path) -> None:
    at, after = position_of(log, 3), position_of(log, 4)
    flip(log, after - 1)
    found = events(log)
    bad = only(damage(found))
    assert (bad.path, bad.position, bad.offset) == (str(log), at, 6)
    assert (bad.bytes_skipped, bad.resumed_at) == (after - at, after)
    assert "stored crc" in bad.what
    assert "offsets 6 to 7 cannot be read" in bad.what
    assert [row.fields["isvalid"] for row in rows(found)] == [n != 3 for n in range(12)]
    assert ends(found)[0].facts["records"] == 22


def test_damage_of_neighbours_is_one_finding(log: Path) -> None:
    at = [position_of(log, number) for number in range(12)]
    for number in (3, 4, 5):
        flip(log, at[number] + HEADER_BYTES)
    bad = only(damage(events(log)))
    assert (bad.position, bad.resumed_at) == (at[3], at[6])
    assert "offsets 6 to 11 cannot be read" in bad.what


def test_behind_a_broken_length_the_index_leads_on(log: Path) -> None:
    at = position_of(log, 3)
    entries = struct.iter_unpack(">ii", log.with_suffix(".index").read_bytes())
    expected = next(position for _, position in entries if position > at)
    flip(log, at + 8, 6)
    bad = only(damage(events(log)))
    assert "length field" in bad.what
    assert (bad.position, bad.offset, bad.resumed_at) == (at, 6, expected)


def test_without_an_index_a_broken_length_ends_the_reading(log: Path) -> None:
    at, size = position_of(log, 3), log.stat().st_size
    log.with_suffix(".index").unlink()
    flip(log, at + 8, 6)
    bad = only(damage(events(log)))
    assert (bad.position, bad.resumed_at, bad.bytes_skipped) == (at, None, size - at)


def test_an_index_that_leads_into_a_value_is_not_followed(tmp_path: Path) -> None:
    """A value may hold a whole batch. What the index says has to fit what is there."""
    inner = encode_values([b"inner"], timestamp=1, base_offset=50)
    first = bytearray(encode_values([b"first"], timestamp=1, base_offset=0))
    outer = encode_values([inner], timestamp=1, base_offset=1)
    last = encode_values([b"last"], timestamp=1, base_offset=2)
    path = tmp_path / f"{FIRST}.log"
    first[16] = 9  # no such magic
    path.write_bytes(bytes(first) + outer + last)
    inside = len(first) + outer.index(inner)
    path.with_suffix(".index").write_bytes(
        struct.pack(">iiii", 1, inside, 2, len(first) + len(outer))
    )
    bad = only(damage(events(path)))
    assert bad.resumed_at == len(first) + len(outer)


def test_garbage_in_the_middle_is_bounded_by_the_index(log: Path) -> None:
    at = position_of(log, 5)
    data = bytearray(log.read_bytes())
    data[at : at + 40] = b"\xee" * 40
    log.write_bytes(data)
    bad = only(damage(events(log, VERIFY)))
    assert bad.position == at
    assert bad.resumed_at is not None


def test_a_batch_twice_is_damage_and_skipped(log: Path) -> None:
    data = log.read_bytes()
    at, after = position_of(log, 3), position_of(log, 4)
    log.write_bytes(data[:after] + data[at:after] + data[after:])
    bad = only(damage(events(log)))
    assert (bad.position, bad.offset) == (after, 8)
    assert bad.what.startswith("a batch with offset 6, where 8 or later comes next")
    assert bad.resumed_at == after + (after - at)


def test_an_epoch_that_goes_down_is_damage(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    epochs = [3, 2, 3]
    batches = [
        encode_values([b"v"], timestamp=1, base_offset=offset, leader_epoch=epoch)
        for offset, epoch in enumerate(epochs)
    ]
    path.write_bytes(b"".join(batches))
    bad = only(damage(events(path)))
    assert bad.what.startswith("leader epoch 2 after 3")
    assert (bad.position, bad.offset) == (len(batches[0]), 1)


def test_records_that_do_not_decode_are_found_by_deep_alone(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    good = encode_values([b"v"], timestamp=1, base_offset=1)
    path.write_bytes(_undecodable() + good)
    assert damage(events(path)) == []
    assert only(damage(events(path, Options(verify=True, deep=True)))).offset == 0
    found = events(path, DEEP)
    bad = only(damage(found))
    assert (bad.position, bad.offset) == (0, 0)
    assert bad.what.startswith("the records cannot be decoded")
    assert values(rows(found)) == ["v"]


def _undecodable() -> bytes:
    """The CRC is right, but the first record's length is not."""
    data = bytearray(encode_batch([Record(0, 1, b"key", b"value", ())]))
    data[HEADER_BYTES] = 0x7F
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


# -- where a file stands among the others


def test_a_flushed_tail_that_was_cut_is_damage(tmp_path: Path) -> None:
    path = write_log(tmp_path) / f"{SECOND}.log"
    size = path.stat().st_size
    at = position_of(path, 2)
    cut(path, 5)
    bad = only(damage(events(path)))
    assert (bad.position, bad.offset, bad.bytes_skipped) == (at, 28, size - 5 - at)
    assert "the file ends inside a batch" in bad.what
    assert "all below offset 30 was flushed" in bad.what


def test_a_flushed_batch_that_is_gone_is_damage(tmp_path: Path) -> None:
    path = write_log(tmp_path) / f"{SECOND}.log"
    cut(path, path.stat().st_size - position_of(path, 2))
    bad = only(damage(events(path)))
    assert bad.offset == 28
    assert bad.what == "the log ends here, but all below offset 30 was flushed"


@pytest.mark.parametrize(
    ("place", "severity"),
    [
        (Place(is_active=True, flushed_offset=1), Severity.INCOMPLETE),
        (Place(is_active=True, flushed_offset=2), Severity.DAMAGE),
        (Place(is_active=False, flushed_offset=1), Severity.DAMAGE),
        (Place(is_active=True, flushed_offset=None), Severity.DAMAGE),
    ],
)
def test_a_torn_tail_is_incomplete_only_where_it_may_be(place: Place, severity: Severity) -> None:
    disk, path = ModelDisk(), f"/{FIRST}.log"
    batches = [encode_values([b"v"], timestamp=1, base_offset=offset) for offset in (0, 1)]
    disk.open(path, create=True).pwrite([batches[0], batches[1][:-1]], 0)
    found = list(dump_log(disk, log_file(path), place, Options()))
    assert only(findings(found)).severity is severity
    assert only(findings(found)).offset == 1


def test_a_missing_segment_is_noticed_where_the_next_begins(tmp_path: Path) -> None:
    directory = write_log(tmp_path)
    cut(directory / f"{FIRST}.log", batches_of(directory / f"{FIRST}.log")[-1].size)
    bad = [each for each in damage(events(directory)) if each.path.endswith(f"{SECOND}.log")]
    assert only(bad).offset == 22
    assert only(bad).what == (
        "begins at offset 24, but the segment before ends at 22: 2 offsets are missing"
    )


def test_segments_that_overlap_are_noticed(tmp_path: Path) -> None:
    directory = write_log(tmp_path)
    first = directory / f"{FIRST}.log"
    more = encode_values([b"v"], timestamp=1, base_offset=24, leader_epoch=1)
    first.write_bytes(first.read_bytes() + more)
    bad = [each for each in damage(events(directory)) if each.path.endswith(f"{SECOND}.log")]
    assert only(bad).what.endswith("the segment before reaches 25: they overlap")


# -- whatever happens to a file


@given(data=st.data())
def test_every_flipped_bit_is_found_and_located(data: st.DataObject) -> None:
    disk, path = ModelDisk(), f"/{FIRST}.log"
    batches = [
        encode_values([b"value"], timestamp=1, base_offset=n, leader_epoch=0) for n in range(5)
    ]
    whole = bytearray(b"".join(batches))
    position = data.draw(st.integers(0, len(whole) - 1))
    whole[position] ^= 1 << data.draw(st.integers(0, 7))
    disk.open(path, create=True).pwrite([whole], 0)
    found = list(dump_log(disk, log_file(path), Place(), DEEP))
    hit = position // len(batches[0])
    within = position % len(batches[0])
    if damage(found):
        assert damage(found)[0].position in (hit * len(batches[0]), (hit + 1) * len(batches[0]))
    else:
        # Base offset and leader epoch are not under the CRC: larger ones look like a gap, an epoch.
        assert within < 8 or 12 <= within < 16


@given(st.binary(max_size=300))
def test_garbage_of_any_kind_is_survived(garbage: bytes) -> None:
    disk, path = ModelDisk(), f"/{FIRST}.log"
    good = encode_values([b"value"], timestamp=1, base_offset=0)
    disk.open(path, create=True).pwrite([good, garbage], 0)
    found = list(dump_log(disk, log_file(path), Place(), DEEP))
    assert bool(damage(found)) == bool(garbage)
    assert values(rows(found))[:1] == ["value"]
