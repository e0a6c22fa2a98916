import os
from pathlib import Path

import pytest

from kraftctl.exit_codes import NotFound
from kraftctl.metadata_source import LOG_NAME, read_directory
from metadata_log import records as r
from metadata_log.codec import encode
from metadata_log.records import Cause, CausedRecord, CauseKind, FeatureLevel
from metadata_log.snapshot import write_values
from quorum.batches import encode_records
from tests.kraftctl.test_metadata_history import ID, STATE, batch


def write(directory: Path, *levels: int) -> Path:
    values = [
        encode(CausedRecord(FeatureLevel("metadata.version", level), Cause(CauseKind.BOOTSTRAP)))
        for level in levels
    ]
    log = directory / LOG_NAME
    log.mkdir()
    path = log / f"{0:020d}.log"
    path.write_bytes(bytes(encode_records(values, timestamp=1)))
    return path


def test_files_are_read_and_not_changed(tmp_path: Path) -> None:
    path = write(tmp_path, 1, 2)
    before = os.stat(path)
    history, notes = read_directory(str(tmp_path))
    assert dict(history.image.features) == {"metadata.version": 2}
    assert ([each.offset for each in history.entries], notes) == ([0, 1], [])
    assert sorted(os.listdir(tmp_path)) == [LOG_NAME]  # no lock
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns
    assert read_directory(str(path.parent))[0].next_offset == 2


def test_a_log_from_its_beginning_is_read_without_checkpoints(tmp_path: Path) -> None:
    """What a record says is told against what was before it, and not against what is now."""
    change = r.PartitionChange(ID, 0, leader=2, isr=(2,))
    batches = [batch(r.TopicRecord("t", ID), r.PartitionRecord(ID, 0, STATE), base=0)]
    batches.append(batch(change, base=2))
    log = tmp_path / LOG_NAME
    log.mkdir()
    (log / f"{0:020d}.log").write_bytes(b"".join(bytes(each.data) for each in batches))
    whole, _ = read_directory(str(tmp_path))
    checkpoint = encode_records(list(write_values(whole.image)), timestamp=1)
    (log / f"{3:020d}-{0:010d}.checkpoint").write_bytes(bytes(checkpoint))
    again, notes = read_directory(str(tmp_path))
    assert ([each.text for each in again.entries], notes) == (
        [each.text for each in whole.entries],
        [],
    )
    assert again.entries[-1].text == "t-0 is led by 2 (was 1); ISR shrinks to 2"


def test_a_torn_end_is_left_out_and_told(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    path.write_bytes(path.read_bytes() + path.read_bytes()[:30])
    history, notes = read_directory(str(tmp_path))
    assert len(history.entries) == 1
    assert "30 bytes" in notes[0]


def test_an_empty_directory_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no segment"):
        read_directory(str(tmp_path))
    with pytest.raises(NotFound, match="no directory"):
        read_directory(str(tmp_path / "nowhere"))
