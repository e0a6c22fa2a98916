"""The cleaner of many logs: the dirtiest first, and none holds up the others."""

import errno
import threading

import pytest

from kraftlog.clock import ManualClock
from kraftlog.config import load
from kraftlog.config_keys import Scope
from storage.cleaner import RETRY_MS, Cleaner, cleaner_for
from storage.compaction import CleanOptions, Outcome
from storage.log import Log
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk
from storage.throttle import Throttle
from tests.storage.keyed import compacted_log, compacting, put, settle, view
from tests.storage.logs import opened, records_of


class Owner:
    """What a log manager does: asks the cleaner again and again, and keeps its table."""

    def __init__(self, *logs: Log, clock: ManualClock | None = None) -> None:
        self.cleaner = Cleaner(CleanOptions(clock=clock or ManualClock()))
        self.offsets = dict.fromkeys(logs, 0)

    def work(self) -> list[str]:
        """Clean until nothing is due; returns the directories in the order they were cleaned."""
        order: list[str] = []
        while (done := self.cleaner.clean_dirtiest(self.offsets.items())) is not None:
            assert done.result.outcome is Outcome.DONE
            self.offsets[done.log] = done.result.next_dirty_offset
            order.append(done.log.directory)
        return order


def log_of(disk: ModelDisk, name: str, records: int, config: LogConfig | None = None) -> Log:
    log = compacted_log(disk, f"/{name}", config)
    for number in range(records):
        put(log, (b"%d" % (number % 3), b"%d" % number))
    return settle(log)


def more(log: Log, records: int) -> None:
    for number in range(records):
        put(log, (b"new", b"%d" % number))
    settle(log)


def test_the_dirtiest_log_comes_first() -> None:  # R30
    disk = ModelDisk()
    logs = [log_of(disk, name, 30) for name in ("a-0", "b-0", "c-0")]
    owner = Owner(*logs)
    assert sorted(owner.work()) == ["/a-0", "/b-0", "/c-0"]
    for log, records in zip(logs, (40, 200, 20), strict=True):
        more(log, records)
    assert owner.work() == ["/b-0", "/a-0", "/c-0"]
    assert owner.work() == []


def test_a_log_that_is_not_dirty_enough_waits() -> None:  # R30
    log = log_of(ModelDisk(), "t-0", 40, compacting(min_cleanable_dirty_ratio=0.9))
    owner = Owner(log)
    assert owner.work() == ["/t-0"]
    more(log, 4)
    assert owner.work() == []
    more(log, 100)
    assert owner.work() == ["/t-0"]
    assert view(records_of(log)) == {b"0": b"39", b"1": b"37", b"2": b"38", b"new": b"99"}


def test_a_log_that_is_not_compacted_is_never_touched() -> None:
    config = LogConfig(segment_bytes=300, index_interval_bytes=100)
    log = log_of(ModelDisk(), "t-0", 40, config)
    assert Owner(log).work() == []
    assert len(records_of(log)) == 40


def test_a_damaged_log_is_left_alone_and_holds_up_nobody() -> None:
    disk = ModelDisk()
    bad, good = log_of(disk, "bad-0", 90), log_of(disk, "good-0", 30)
    disk.flip_bit(bad.segments[0].log.path, 70, 3)
    clock = ManualClock()
    owner = Owner(bad, good, clock=clock)
    assert owner.work() == ["/good-0"]
    assert list(owner.cleaner.uncleanable()) == ["/bad-0"]
    assert "cannot be compacted" in owner.cleaner.uncleanable()["/bad-0"]
    clock.advance(RETRY_MS * 100)
    assert owner.work() == []
    disk.flip_bit(bad.segments[0].log.path, 70, 3)
    owner.cleaner.readmit(bad)
    assert owner.work() == ["/bad-0"]
    assert owner.cleaner.uncleanable() == {}


@pytest.mark.parametrize(
    ("operation", "path_glob"),
    [("pwrite", "*.cleaned"), ("create", "*.cleaned"), ("pread", "*.log")],
)
def test_after_an_error_that_may_pass_a_log_is_tried_again(operation: str, path_glob: str) -> None:
    disk, clock = ModelDisk(), ManualClock()
    log = log_of(disk, "t-0", 40)
    before = records_of(log)
    owner = Owner(log, clock=clock)
    if operation == "pread":
        disk.fail_next("pread", errno.EIO, path_glob)
    elif operation == "create":
        disk.fail_next("create", errno.ENOSPC, path_glob)
    else:
        disk.fail_next("pwrite", errno.ENOSPC, path_glob)
    assert owner.work() == []
    assert "/t-0" in owner.cleaner.uncleanable()
    assert records_of(log) == before
    clock.advance(RETRY_MS - 1)
    assert owner.work() == []
    clock.advance(1)
    assert owner.work() == ["/t-0"]
    assert len(records_of(log)) == 3


def test_a_log_opened_anew_begins_with_a_clean_slate() -> None:
    disk = ModelDisk()
    bad = log_of(disk, "t-0", 40)
    path = bad.segments[0].log.path
    disk.flip_bit(path, 70, 3)
    owner = Owner(bad)
    assert owner.work() == []
    bad.close()
    disk.flip_bit(path, 70, 3)
    again = opened(disk, "/t-0", compacting(), clean=True)
    again.high_watermark = again.end_offset
    owner.offsets = {again: 0}
    assert owner.work() == ["/t-0"]


def test_a_stop_is_obeyed_and_what_comes_next_goes_on_from_there() -> None:
    log = log_of(ModelDisk(), "t-0", 40)
    stop = threading.Event()
    cleaner = Cleaner(CleanOptions(clock=ManualClock(), should_stop=stop.is_set))
    stop.set()
    stopped = cleaner.clean_dirtiest([(log, 0)])
    assert stopped is not None
    assert (stopped.result.outcome, stopped.result.next_dirty_offset) == (Outcome.STOPPED, 0)
    assert len(records_of(log)) == 40
    stop.clear()
    done = cleaner.clean_dirtiest([(log, stopped.result.next_dirty_offset)])
    assert done is not None
    assert (done.result.outcome, len(records_of(log))) == (Outcome.DONE, 3)


def test_what_is_read_and_written_is_paid_for() -> None:
    log = log_of(ModelDisk(), "t-0", 40)
    clock = ManualClock()
    pauses: list[float] = []
    throttle = Throttle(1_000, clock=clock, pause=pauses.append)
    done = Cleaner(CleanOptions(clock=clock, throttle=throttle)).clean_dirtiest([(log, 0)])
    assert done is not None
    stats = done.result.stats
    paid = (stats.bytes_read + stats.bytes_written) / 1_000 - 0.1
    assert max(pauses) == pytest.approx(paid)
    assert stats.bytes_read > stats.bytes_written > 0


def test_the_configuration_decides_whether_there_is_a_cleaner() -> None:  # R30
    off = load(Scope.BROKER, flags={"log.cleaner.enable": "false"})
    assert cleaner_for(off, threading.Event()) is None


def test_a_cleaner_from_the_configuration_cleans_and_stops() -> None:
    flags = {"log.cleaner.dedupe.buffer.size": "1048576"}
    stop = threading.Event()
    cleaner = cleaner_for(load(Scope.BROKER, flags=flags), stop)
    assert cleaner is not None
    disk = ModelDisk()
    first, second = log_of(disk, "a-0", 40), log_of(disk, "b-0", 40)
    done = cleaner.clean_dirtiest([(first, 0)])
    assert done is not None
    assert done.result.outcome is Outcome.DONE
    stop.set()
    stopped = cleaner.clean_dirtiest([(second, 0)])
    assert stopped is not None
    assert stopped.result.outcome is Outcome.STOPPED


def test_a_full_map_that_cannot_hold_one_batch_says_which_setting_to_raise() -> None:
    log = compacted_log(ModelDisk())
    put(log, *[(b"%d" % number, b"v") for number in range(50)])
    settle(log)
    cleaner = Cleaner(CleanOptions(dedupe_buffer_bytes=24 * 20, clock=ManualClock()))
    assert cleaner.clean_dirtiest([(log, 0)]) is None
    reason = cleaner.uncleanable()["/t-0"]
    assert "holds 18 keys, the batch at offset 0" in reason
    assert "raise log.cleaner.dedupe.buffer.size" in reason


def test_a_log_that_failed_half_way_is_not_compacted_further() -> None:
    disk = ModelDisk()
    log = log_of(disk, "t-0", 40)
    disk.fail_next("rename", errno.EIO, "*.log.swap")
    owner = Owner(log)
    assert owner.work() == []
    assert "stopped half way" in owner.cleaner.uncleanable()["/t-0"]
    owner.cleaner.readmit(log)
    names = disk.list_dir("/t-0")
    assert owner.work() == []
    assert disk.list_dir("/t-0") == names
    again = opened(disk, "/t-0", compacting())
    again.high_watermark = again.end_offset
    assert Owner(settle(again)).work() == ["/t-0"]
    assert len(records_of(again)) == 3
