"""A log whose writer is killed in the middle, again and again: recovered and verified each time."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlog.clock import SystemClock
from kraftlog.record_batch import read_batches
from storage.files import OsFiles
from storage.log import Log
from storage.recovery import OpenOptions, open_log
from tests.storage.kill_writer import CONFIG, batch_at

READ_BYTES = 4 << 20


def verify(log: Log, flushed: int) -> None:
    """Every batch is the one that belongs there, byte for byte, and nothing that was flushed is
    missing.
    """
    assert log.end_offset >= flushed
    offset = 0
    while offset < log.end_offset:
        part = log.read(offset, READ_BYTES)
        for found in read_batches(part.read()):
            assert found.base_offset == offset
            assert found.data == batch_at(offset)
            offset = found.next_offset


def write_until(directory: Path, target_bytes: int, kill_at_bytes: int) -> int:
    """Run the writer, kill it once it has passed `kill_at_bytes`; returns what it had flushed by
    then.
    """
    command = [sys.executable, "-m", "tests.storage.kill_writer", str(directory), str(target_bytes)]
    flushed = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        if writer.stdout is None:
            raise RuntimeError("the writer has no output")
        for line in writer.stdout:
            said, offset, size = line.split()
            flushed = int(offset) if said != "opened" else flushed
            if int(size) >= kill_at_bytes and said == "flushed":
                writer.kill()
                break
    return flushed


def kill_and_recover(directory: Path, target_bytes: int, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    points = sorted(dice.randrange(target_bytes) for _ in range(kills))
    for number, point in enumerate(points, 1):
        flushed = write_until(directory, target_bytes * 2, point)
        log = open_log(OsFiles(), str(directory), CONFIG, SystemClock(), OpenOptions())
        verify(log, flushed)
        print(f"kill {number}/{kills}: {log.size >> 20} MB and offset {log.end_offset} recovered")
    write_until(directory, target_bytes, target_bytes * 2)
    log = open_log(OsFiles(), str(directory), CONFIG, SystemClock(), OpenOptions(clean=True))
    assert log.size >= target_bytes
    verify(log, log.end_offset)


@pytest.mark.slow
def test_64_mb_and_three_kills(tmp_path: Path) -> None:
    kill_and_recover(tmp_path / "t-0", 64 << 20, kills=3, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_1_gb_and_twenty_kills(tmp_path: Path) -> None:
    kill_and_recover(tmp_path / "t-0", 1 << 30, kills=20, seed=2)
