"""Indexes: their entries, and what is wrong with them by themselves or beside their log."""

import struct
from pathlib import Path

import pytest

from kraftlog.record_batch import encode_values
from storage.dump_events import Event, Finding, Options, Severity
from tests.storage.dumps import (
    FIRST,
    SECOND,
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

VERIFY = Options(verify=True)
OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path)


def entries(path: Path, entry: struct.Struct) -> list[tuple[int, ...]]:
    return list(entry.iter_unpack(path.read_bytes()))


def put(path: Path, entry: struct.Struct, number: int, *values: int) -> None:
    data = bytearray(path.read_bytes())
    entry.pack_into(data, number * entry.size, *values)
    path.write_bytes(data)


def only_damage(found: list[Event]) -> Finding:
    bad = damage(found)
    assert len(bad) == 1, bad
    return bad[0]


# -- by itself


def test_the_entries_have_absolute_offsets(log: Path) -> None:
    path = log / f"{SECOND}.index"
    stored = entries(path, OFFSET_ENTRY)
    assert stored
    assert [row.fields for row in rows(events(path))] == [
        {"offset": 24 + offset, "position": position} for offset, position in stored
    ]
    path = log / f"{SECOND}.timeindex"
    assert [row.fields for row in rows(events(path))] == [
        {"timestamp": timestamp, "offset": 24 + offset}
        for timestamp, offset in entries(path, TIME_ENTRY)
    ]


def test_a_range_of_offsets(log: Path) -> None:
    path = log / f"{FIRST}.index"
    shown = rows(events(path, Options(from_offset=8, to_offset=12)))
    wanted = [offset for offset, _ in entries(path, OFFSET_ENTRY) if 8 <= offset < 12]
    assert [row.fields["offset"] for row in shown] == wanted
    assert wanted


@pytest.mark.parametrize("name", [f"{FIRST}.index", f"{FIRST}.timeindex"])
def test_an_entry_that_goes_back_is_located(log: Path, name: str) -> None:
    path = log / name
    entry = OFFSET_ENTRY if name.endswith(".index") else TIME_ENTRY
    before, size = entries(path, entry)[1], path.stat().st_size
    put(path, entry, 2, *before)
    bad = only_damage(events(path))
    assert bad.position == 2 * entry.size
    assert bad.bytes_skipped == size - 2 * entry.size
    assert "it follows" in bad.what


def test_a_negative_entry_is_damage(log: Path) -> None:
    path = log / f"{SECOND}.index"
    put(path, OFFSET_ENTRY, 0, -1, 0)
    assert only_damage(events(path)).what == "offset 23 position 0: negative"


@pytest.mark.parametrize(
    ("base", "severity"), [(FIRST, Severity.DAMAGE), (SECOND, Severity.INCOMPLETE)]
)
def test_an_entry_that_is_cut(log: Path, base: str, severity: Severity) -> None:
    path = log / f"{base}.index"
    cut(path, 3)
    (finding,) = findings(events(path))
    assert finding.severity is severity
    assert finding.what == "the file ends inside an entry"
    assert finding.position == path.stat().st_size - 5
    assert finding.bytes_skipped == 5


# -- beside its log


@pytest.mark.parametrize("name", [f"{FIRST}.index", f"{FIRST}.timeindex", f"{SECOND}.index"])
def test_a_sound_index_is_confirmed(log: Path, name: str) -> None:
    found = events(log / name, VERIFY)
    assert findings(found) == []
    assert rows(found) == []
    assert ends(found)[0].facts["entries"] != 0


def test_a_position_inside_a_batch_is_found(log: Path) -> None:
    path = log / f"{FIRST}.index"
    offset, position = entries(path, OFFSET_ENTRY)[1]
    put(path, OFFSET_ENTRY, 1, offset, position + 1)
    assert damage(events(path)) == []
    bad = only_damage(events(path, VERIFY))
    assert bad.position == OFFSET_ENTRY.size
    assert f"offset {offset} position {position + 1}: no batch begins at that position" in bad.what


def test_a_wrong_offset_is_found(log: Path) -> None:
    path = log / f"{FIRST}.index"
    offset, position = entries(path, OFFSET_ENTRY)[1]
    put(path, OFFSET_ENTRY, 1, offset - 1, position)
    bad = only_damage(events(path, VERIFY))
    assert bad.what.endswith(f"the batch there has last offset {offset}")


def test_an_index_of_a_shorter_log_is_found(log: Path) -> None:
    cut(log / f"{FIRST}.log", 200)
    assert "no batch begins" in only_damage(events(log / f"{FIRST}.index", VERIFY)).what
    assert findings(events(log / f"{FIRST}.timeindex", VERIFY))


def test_a_timestamp_that_no_batch_has_is_found(log: Path) -> None:
    path = log / f"{FIRST}.timeindex"
    last = len(entries(path, TIME_ENTRY)) - 1
    timestamp, offset = entries(path, TIME_ENTRY)[last]
    put(path, TIME_ENTRY, last, timestamp + 1, offset)
    bad = only_damage(events(path, VERIFY))
    assert bad.what.endswith(f"the batch there has timestamp {timestamp}")


def test_a_time_entry_that_hides_newer_records_is_found(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    batches = [
        encode_values([b"v"], timestamp=timestamp, base_offset=offset)
        for offset, timestamp in enumerate([10, 30, 20])
    ]
    path.write_bytes(b"".join(batches))
    path = path.with_suffix(".timeindex")
    path.write_bytes(TIME_ENTRY.pack(10, 0) + TIME_ENTRY.pack(20, 2))
    bad = only_damage(events(path, VERIFY))
    assert bad.position == TIME_ENTRY.size
    assert bad.what == "timestamp 20 offset 2: there is a batch up to there with timestamp 30"


def test_a_sealed_time_index_has_to_know_the_newest_timestamp(log: Path) -> None:
    path = log / f"{FIRST}.timeindex"
    cut(path, TIME_ENTRY.size)
    assert damage(events(path)) == []
    bad = only_damage(events(path, VERIFY))
    assert bad.what == f"lacks the newest timestamp of its log, {TIME_MS + 11}"
    active = log / f"{SECOND}.timeindex"
    cut(active, TIME_ENTRY.size)
    assert damage(events(active, VERIFY)) == []


def test_an_offset_index_is_not_blamed_for_a_damaged_log(log: Path) -> None:
    path = log / f"{FIRST}.log"
    flip(path, position_of(path, 6) - 1)
    assert findings(events(log / f"{FIRST}.index", VERIFY)) == []
    (note,) = findings(events(log / f"{FIRST}.timeindex", VERIFY))
    assert note.severity is Severity.NOTE
    assert "compared only in part" in note.what


def test_without_a_log_an_index_is_judged_alone(log: Path) -> None:
    (log / f"{FIRST}.log").unlink()
    (note,) = findings(events(log / f"{FIRST}.index", VERIFY))
    assert note.severity is Severity.NOTE
    assert note.what == "has no log beside it to compare with"
