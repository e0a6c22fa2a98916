import errno
from pathlib import Path

import pytest

from chaos.live import leftovers, small_disk


def test_a_disk_that_is_full_takes_no_byte_and_heals(tmp_path: Path) -> None:
    if reason := small_disk.missing():
        pytest.skip(reason)
    directory = tmp_path / "b1"
    directory.mkdir()
    (directory / "log").write_bytes(b"records")
    try:
        small_disk.move(directory, 1 << 20)
    except small_disk.CannotMount as error:
        pytest.skip(str(error))
    try:
        assert (directory / "log").read_bytes() == b"records"
        small_disk.fill(directory)
        with pytest.raises(OSError, match="No space left") as full:
            (directory / "more").write_bytes(bytes(100_000))
        assert full.value.errno == errno.ENOSPC
        small_disk.empty(directory)
        (directory / "more").write_bytes(bytes(1000))
    finally:
        leftovers.remove(str(tmp_path))
    assert not (directory / "more").exists()  # it was on the small disk
    assert not (tmp_path / "b1.aside").exists()
