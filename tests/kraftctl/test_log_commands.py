from pathlib import Path

import pytest

from kraftlog.record_batch import Record, encode_batch
from tests.kraftctl.conftest import invoke
from tests.kraftctl.test_schema_command import check


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A file with one batch of two records."""
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    records = [Record(offset, 1_700_000_000_000, b"k", b"v", ()) for offset in (0, 1)]
    path.write_bytes(encode_batch(records))
    return path


def test_batches_and_records_are_shown_without_a_server(segment: Path) -> None:
    # R28
    shown = invoke("log", "dump", str(segment), "--deep", "-o", "json")
    assert (shown.code, shown.pick(1, "type"), shown.pick(2, "type")) == (0, "batch", "record")
    check(shown, "log dump")
    assert "batches 1, records 2" in invoke("log", "dump", str(segment)).out
    lines = invoke("log", "dump", str(segment), "--offsets", "5:9", "-o", "jsonl").out
    assert '"batch"' not in lines
    assert invoke("log", "dump", str(segment), "--offsets", "9:5").code == 2


def test_files_are_whole_or_damaged(segment: Path) -> None:
    # R28
    whole = invoke("log", "verify", str(segment), "-o", "json")
    assert whole.code == 0
    check(whole, "log verify")
    raw = bytearray(segment.read_bytes())
    raw[-1] ^= 1
    segment.write_bytes(raw)
    damaged = invoke("log", "verify", str(segment), "-o", "jsonl")
    assert (damaged.code, '"finding"' in damaged.out) == (3, True)


def test_what_is_no_log_is_said(tmp_path: Path, segment: Path) -> None:
    nowhere = invoke("log", "dump", str(tmp_path / "nowhere"))
    assert (nowhere.code, "no such file" in nowhere.err, "hint:" in nowhere.err) == (5, True, True)
    both = invoke("log", "dump", str(tmp_path / "nowhere"), str(segment))
    assert (both.code, "no such file" in both.err, "t-0" in both.out) == (5, True, True)
    assert invoke("log", "dump").code == 2
