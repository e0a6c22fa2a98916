"""A disk that says no at any moment: the log refuses by name, goes on where it can, and never calls
durable what is not.
"""

import errno
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import KraftError, StorageError
from storage.log import Log
from storage.model_disk import ModelDisk, Operation
from storage.retention import apply_retention
from tests.storage.logs import batch, fill, opened, small_segments, values_of

DIRECTORY = "/data/t-0"
OPERATIONS: list[Operation] = ["pwrite", "create", "open", "truncate", "rename", "remove", "pread"]

Kind = Literal["append", "flush", "roll", "cut", "read", "close"]
KINDS: list[Kind] = ["append"] * 6
KINDS += ["flush", "flush", "roll", "cut", "read", "close"]
Steps = list[tuple[Kind, int]]
steps = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 99)),
    min_size=5,
    max_size=40,
)


def new_disk(seed: int) -> ModelDisk:
    disk = ModelDisk(seed)
    disk.make_dir("/data")
    disk.sync_dir("/")
    return disk


@dataclass
class Story:
    """What was done to a log, and what is known of it: `written` is what an append or a cut that
    succeeded left; the first `flushed` of these are durable.
    """

    disk: ModelDisk
    log: Log = field(init=False)
    written: list[bytes | None] = field(default_factory=list)
    flushed: int = 0
    number: int = 0
    cutting_to: int | None = None

    def __post_init__(self) -> None:
        self.open()

    def open(self, *, clean: bool = False) -> None:
        self.log = opened(self.disk, DIRECTORY, small_segments(), clean=clean)

    def do(self, kind: Kind, number: int) -> None:
        match kind:
            case "append":
                self.number += 1
                value = b"%d" % self.number * (1 + number)
                self.log.append(batch(value), leader_epoch=self.number // 7)
                self.written.append(value)
            case "flush":
                self.flushed = self.log.flush()
            case "roll":
                self.log.roll()
            case "cut":
                self.cut(len(self.written) * number // 100)
            case "read":
                assert values_of(self.log) == self.written
            case "close":
                clean = self.log.close()
                self.flushed = len(self.written) if clean else self.flushed
                self.open(clean=clean)

    def cut(self, offset: int) -> None:
        self.cutting_to = offset
        self.flushed = min(self.flushed, offset)
        del self.written[self.log.truncate_to(offset) :]
        self.cutting_to = None

    def try_to(self, kind: Kind, number: int) -> None:
        try:
            self.do(kind, number)
        except KraftError:
            if kind in ("cut", "close"):
                self.reopen()
        except OSError:
            assert kind == "close"  # the owner of many logs takes note and goes on
            self.reopen()

    def reopen(self) -> None:
        """Such a log only a new process can open."""
        self.disk.kill_process()
        self.open()
        self.check(self.log)
        self.written = values_of(self.log)
        self.cutting_to = None

    def check(self, log: Log) -> None:
        found = values_of(log)
        assert found == self.written[: len(found)]
        floor = self.flushed if self.cutting_to is None else min(self.flushed, self.cutting_to)
        assert len(found) >= floor


@given(
    steps,
    st.sampled_from(OPERATIONS),
    st.integers(0, 30),
    st.sampled_from([errno.ENOSPC, errno.EIO]),
    st.integers(0, 999),
)
def test_whatever_fails_what_was_flushed_is_there(
    script: Steps, operation: Operation, skipped: int, error: int, seed: int
) -> None:
    disk = new_disk(seed)
    story = Story(disk)
    disk.fail_next(operation, error, skipped=skipped)
    for kind, number in script:
        story.try_to(kind, number)
    disk.restart(seed)
    story.check(opened(disk, DIRECTORY, small_segments()))


def roll_and_flush(log: Log) -> None:
    log.roll()
    log.flush()


@pytest.mark.parametrize("path_glob", ["*leader-epoch*", "*.index", "*.timeindex", "*recovery*"])
def test_a_flush_that_failed_is_made_up_for_by_the_next(path_glob: str) -> None:
    """What the failed one had taken in hand must not be forgotten."""
    for seed in range(10):
        disk = new_disk(seed)
        log = opened(disk, DIRECTORY, small_segments())
        fill(log, 2)
        log.flush()
        fill(log, 10, leader_epoch=1, first=2)
        disk.fail_next("pwrite", errno.ENOSPC, path_glob)
        with pytest.raises(StorageError) as refusal:
            roll_and_flush(log)
        assert "free space" in refusal.value.hint
        assert log.flushed_offset == 2
        assert log.flush() == log.end_offset == 12
        assert len(values_of(opened(disk.restart(), DIRECTORY, small_segments()))) == 12


@pytest.mark.parametrize("operation", ["create", "open"])
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot.tmp"])
def test_a_segment_that_could_not_be_made_leaves_no_trace(
    operation: Operation, suffix: str
) -> None:
    """Its file would be taken for the end of the log, by a start that trusts a clean stop."""
    disk = new_disk(1)
    log = opened(disk, DIRECTORY, small_segments(400))
    fill(log, 2)
    disk.fail_next(operation, errno.EMFILE, f"*{suffix}")
    with pytest.raises(StorageError, match="cannot add a segment"):
        log.append(batch(b"x" * 300), leader_epoch=0)
    fill(log, 6, size=5, first=2)
    assert len(values_of(log)) == 8
    assert log.close()
    for clean in (True, False):
        assert len(values_of(opened(disk, DIRECTORY, small_segments(400), clean=clean))) == 8


def test_a_segment_whose_remains_cannot_be_removed_stops_the_log() -> None:
    disk = new_disk(1)
    log = opened(disk, DIRECTORY, small_segments(400))
    fill(log, 2)
    disk.fail_next("create", errno.ENOSPC, "*.index")
    disk.fail_next("remove", errno.EIO, "*.log")
    with pytest.raises(StorageError, match="cannot add a segment"):
        log.append(batch(b"x" * 300), leader_epoch=0)
    with pytest.raises(StorageError, match="restart"):
        fill(log, 1, size=5)
    assert len(values_of(opened(disk.kill_process(), DIRECTORY, small_segments(400)))) == 2


def test_a_cut_that_failed_half_way_stops_the_log_until_it_is_opened_anew() -> None:
    disk = new_disk(1)
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 20)
    log.flush()
    disk.fail_next("rename", errno.EIO, "*.log")
    with pytest.raises(StorageError, match="could not be cut"):
        log.truncate_to(3)
    for work in (log.flush, log.roll, lambda: log.truncate_to(3), lambda: fill(log, 1)):
        with pytest.raises(StorageError, match="restart the process"):
            work()
    again = opened(disk.kill_process(), DIRECTORY, small_segments())
    assert 3 <= len(values_of(again)) <= 20


def test_segments_that_cannot_be_retired_are_out_of_use_all_the_same() -> None:
    disk = new_disk(1)
    log = opened(disk, DIRECTORY, small_segments(retention_bytes=0))
    fill(log, 10)
    log.high_watermark = log.end_offset
    disk.fail_next("rename", errno.EIO, "*.log")
    with pytest.raises(StorageError, match="cannot drop segments of /data/t-0"):
        apply_retention(log, log._clock)
    assert log.start_offset == log.segments[0].base_offset
    assert len(log.segments) == 1
    fill(log, 1, first=10)


def test_a_read_that_fails_names_the_file() -> None:
    disk = new_disk(1)
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    part = log.read(0, 1 << 20)
    for work in (part.read, lambda: log.read(0, 100), lambda: log.offset_for_time(5)):
        disk.fail_next("pread", errno.EIO, "*.log")
        with pytest.raises(StorageError, match=r"cannot read: .*0000\.log"):
            work()
    assert len(values_of(log)) == 3


def test_times_of_a_disk_that_fails() -> None:
    disk = new_disk(1)
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 10)
    log.close()
    again = opened(disk, DIRECTORY, small_segments(), clean=True)
    disk.fail_next("pread", errno.EIO, "*")
    with pytest.raises(StorageError, match="cannot read"):
        again.offset_of_max_timestamp()
    found = again.offset_of_max_timestamp()
    assert found is not None
    assert found.offset == 9


def test_an_append_that_must_read_first_fails_by_name() -> None:
    """After a clean start the age of the active segment is read when it is first needed."""
    disk = new_disk(1)
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    log.close()
    again = opened(disk, DIRECTORY, clean=True)
    disk.fail_next("pread", errno.EIO, "*.log")
    with pytest.raises(StorageError, match="cannot append"):
        fill(again, 1, first=3)
    fill(again, 1, first=3)
    assert len(values_of(again)) == 4
