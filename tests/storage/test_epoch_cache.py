"""The epoch cache against a log that remembers the epoch of every single offset."""

import errno
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kraftlog._check import InvariantViolation
from kraftlog.types import EpochEnd
from storage.damage import StateDamaged
from storage.epoch_cache import EpochCache, EpochStart
from storage.model_disk import ModelDisk

PATH = "leader-epoch-checkpoint"


def cache_of(*entries: tuple[int, int], disk: ModelDisk | None = None) -> EpochCache:
    cache = EpochCache(disk or ModelDisk(), PATH)
    for entry in entries:
        cache.assign(*entry)
    return cache


def loaded(disk: ModelDisk, *, synced: bool = False) -> EpochCache:
    cache = EpochCache(disk, PATH)
    cache.load(synced=synced)
    return cache


# -- the rules, one by one


def test_an_empty_cache_knows_nothing() -> None:
    cache = cache_of()
    assert cache.latest() is None
    assert cache.end_offset_for(0, 10) is None
    assert cache.epoch_at(0) is None
    cache.truncate_from_end(0)
    cache.truncate_from_start(5)
    assert cache.entries() == ()


def test_the_end_of_an_epoch() -> None:
    cache = cache_of((2, 5), (4, 10), (7, 10 + 8))
    assert cache.end_offset_for(-1, 30) is None
    assert cache.end_offset_for(8, 30) is None
    assert cache.end_offset_for(7, 30) == EpochEnd(7, 30)
    assert cache.end_offset_for(6, 30) == EpochEnd(4, 18)
    assert cache.end_offset_for(4, 30) == EpochEnd(4, 18)
    assert cache.end_offset_for(3, 30) == EpochEnd(2, 10)
    assert cache.end_offset_for(2, 30) == EpochEnd(2, 10)
    assert cache.end_offset_for(1, 30) == EpochEnd(1, 5)


def test_the_epoch_of_an_offset() -> None:
    cache = cache_of((2, 5), (4, 10))
    epochs = [cache.epoch_at(offset) for offset in (4, 5, 9, 10, 10**9)]
    assert epochs == [None, 2, 2, 4, 4]


def test_an_epoch_is_assigned_once() -> None:
    cache = cache_of((2, 5))
    assert not cache.assign(2, 5)
    assert not cache.assign(2, 9)
    assert cache.entries() == (EpochStart(2, 5),)
    assert cache.assign(2, 3)
    assert cache.entries() == (EpochStart(2, 3),)


def test_a_batch_without_an_epoch_begins_none() -> None:
    cache = cache_of()
    assert not cache.assign(-1, 0)
    assert cache.entries() == ()


@pytest.mark.parametrize(
    ("new", "left"),
    [
        ((5, 30), [(1, 0), (3, 10), (4, 20), (5, 30)]),
        ((5, 20), [(1, 0), (3, 10), (5, 20)]),
        ((5, 5), [(1, 0), (5, 5)]),
        ((3, 30), [(1, 0), (3, 30)]),
        ((2, 30), [(1, 0), (2, 30)]),
        ((0, 0), [(0, 0)]),
    ],
)
def test_an_assignment_drops_what_contradicts_it(
    new: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    cache = cache_of((1, 0), (3, 10), (4, 20))
    assert cache.assign(*new)
    assert list(cache.entries()) == left


def test_only_a_real_contradiction_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    cache = cache_of((1, 0), (3, 10))
    cache.assign(4, 10)
    assert not caplog.records
    cache.assign(2, 5)
    assert "EpochStart(epoch=4, start_offset=10)" in caplog.text


def test_a_truncation_to_the_end_takes_an_epoch_that_begins_there() -> None:
    # KAFKA-10706: the entry stayed, and the replica asked for the same divergence for ever.
    cache = cache_of((1, 0), (3, 10))
    cache.truncate_from_end(10)
    assert cache.entries() == (EpochStart(1, 0),)
    cache.truncate_from_end(10)
    cache.truncate_from_end(10**6)
    assert cache.entries() == (EpochStart(1, 0),)
    cache.truncate_from_end(0)
    assert cache.entries() == ()


def test_a_truncation_is_to_an_offset() -> None:
    with pytest.raises(InvariantViolation, match="negative offset"):
        cache_of().truncate_from_end(-1)


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (4, [(1, 5), (3, 10), (4, 20)]),
        (5, [(1, 5), (3, 10), (4, 20)]),
        (9, [(1, 9), (3, 10), (4, 20)]),
        (10, [(3, 10), (4, 20)]),
        (15, [(3, 15), (4, 20)]),
        (99, [(4, 99)]),
    ],
)
def test_from_the_start_the_epoch_that_holds_the_offset_stays(
    offset: int, left: list[tuple[int, int]]
) -> None:
    disk = ModelDisk()
    cache_of((1, 5), (3, 10), (4, 20), disk=disk).flush(durable=True)
    cache = loaded(disk, synced=True)
    cache.truncate_from_start(offset)
    assert list(cache.entries()) == left
    assert cache.dirty == (offset > 5)


# -- against models

entry_lists = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 60)), max_size=12)


@given(entry_lists)
def test_any_assignments_leave_what_agrees_with_the_last(given: list[tuple[int, int]]) -> None:
    cache = cache_of()
    model: list[tuple[int, int]] = []
    for epoch, start in given:
        if not (model and model[-1][0] == epoch and model[-1][1] <= start):
            model = [entry for entry in model if entry[0] < epoch and entry[1] < start]
            model.append((epoch, start))
        cache.assign(epoch, start)
        assert list(cache.entries()) == model


class LogMachine(RuleBasedStateMachine):
    """A log as a list of epochs, one for each offset, and perhaps one that wrote nothing yet."""

    @initialize(start=st.integers(0, 20))
    def begin(self, start: int) -> None:
        self.disk = ModelDisk()
        self.cache = EpochCache(self.disk, PATH)
        self.start = start
        self.epochs: list[int] = []
        self.idle: int | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.epochs)

    def newest(self) -> int:
        return max([*self.epochs, -1 if self.idle is None else self.idle])

    @rule(raised=st.integers(0, 3), count=st.integers(0, 5))
    def lead(self, raised: int, count: int) -> None:
        """A leader of this or a later epoch begins, and writes something or nothing."""
        epoch = max(0, self.newest() + raised)
        self.cache.assign(epoch, self.end)
        if count:
            self.epochs += [epoch] * count
            self.idle = None
        elif epoch not in self.epochs:
            self.idle = epoch

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end + 3))
        if offset <= self.end:
            self.idle = None
        del self.epochs[offset - self.start :]
        self.cache.truncate_from_end(offset)

    @rule(data=st.data())
    def drop_the_oldest(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        if offset == self.end and self.epochs and self.idle is None:
            self.idle = self.epochs[-1]
        del self.epochs[: offset - self.start]
        self.start = offset
        self.cache.truncate_from_start(offset)

    @rule(durable=st.booleans(), restart=st.booleans())
    def write_and_read(self, durable: bool, restart: bool) -> None:
        self.cache.flush(durable=durable)
        if durable and restart:
            self.disk.restart()
        self.cache = loaded(self.disk)

    @invariant()
    def every_answer_is_that_of_the_log(self) -> None:
        if not hasattr(self, "cache"):
            return
        known = {*self.epochs, *([] if self.idle is None else [self.idle])}
        assert [entry.epoch for entry in self.cache.entries()] == sorted(known)
        assert self.cache.latest() == max(known, default=None)
        for index, epoch in enumerate(self.epochs):
            assert self.cache.epoch_at(self.start + index) == epoch
        assert self.cache.epoch_at(self.end) == max(known, default=None)
        assert self.cache.epoch_at(self.start - 1) is None
        for epoch in range(-1, max(known, default=0) + 2):
            assert self.cache.end_offset_for(epoch, self.end) == self.end_of(epoch, known)

    def end_of(self, epoch: int, known: set[int]) -> EpochEnd | None:
        if epoch < 0 or epoch > max(known, default=-1):
            return None
        later = [n for n, written in enumerate(self.epochs, self.start) if written > epoch]
        found = max((other for other in known if other <= epoch), default=epoch)
        return EpochEnd(found, later[0] if later else self.end)


TestLogMachine = LogMachine.TestCase


# -- the file


def test_the_file_is_kafkas() -> None:
    disk = ModelDisk()
    cache = cache_of((0, 0), (3, 17), disk=disk)
    cache.flush(durable=True)
    assert disk.read_bytes(PATH) == b"0\n2\n0 0\n3 17\n"
    assert loaded(disk).entries() == cache.entries()
    cache.clear()
    cache.flush(durable=True)
    assert disk.read_bytes(PATH) == b"0\n0\n"
    assert loaded(disk).entries() == ()


def test_nothing_is_written_without_a_change() -> None:
    disk = ModelDisk()
    cache = cache_of((1, 0), disk=disk)
    cache.flush(durable=True)
    written = disk.op_count
    cache.assign(1, 5)
    cache.truncate_from_end(5)
    cache.truncate_from_start(0)
    cache.flush(durable=True)
    assert disk.op_count == written


def test_that_there_are_no_epochs_is_written_too() -> None:
    disk = ModelDisk()
    cache = cache_of(disk=disk)
    assert cache.dirty
    cache.flush(durable=True)
    assert loaded(disk).entries() == ()


def test_what_is_not_synced_is_written_again_when_it_must_last() -> None:
    disk = ModelDisk()
    cache = cache_of((1, 0), disk=disk)
    cache.flush(durable=False)
    written = disk.op_count
    cache.flush(durable=False)
    assert disk.op_count == written
    assert cache.dirty
    cache.flush(durable=True)
    assert disk.restart().read_bytes(PATH) == b"0\n1\n1 0\n"


def test_clean_once_durable() -> None:
    disk = ModelDisk()
    cache = cache_of((1, 0), disk=disk)
    cache.flush(durable=True)
    assert not cache.dirty
    assert not loaded(disk, synced=True).dirty


def test_what_a_killed_writer_left_is_made_durable_before_it_counts() -> None:
    # Killed between the rename and the sync of the directory, then a start, then a power cut.
    disk = ModelDisk()
    cache_of((1, 0), disk=disk).flush(durable=True)
    cache_of((1, 0), (2, 10), disk=disk).flush(durable=False)
    cache = loaded(disk.kill_process())
    assert cache.dirty
    cache.flush(durable=True)
    for seed in range(20):
        assert loaded(disk.fork().restart(seed)).latest() == 2


def test_a_failed_write_leaves_it_dirty() -> None:
    disk = ModelDisk()
    cache = cache_of((1, 0), disk=disk)
    disk.fail_next("pwrite", errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        cache.flush(durable=True)
    assert cache.dirty
    cache.flush(durable=True)
    assert loaded(disk).latest() == 1


def test_every_cut_is_noticed() -> None:
    disk = ModelDisk()
    cache_of((0, 0), (3, 17), (12, 400), disk=disk).flush(durable=True)
    whole = disk.read_bytes(PATH)
    for length in range(len(whole)):
        disk.write_atomic(PATH, whole[:length])
        with pytest.raises(StateDamaged, match=PATH):
            loaded(disk)


@pytest.mark.parametrize(
    "text",
    [
        b"1\n0\n",
        b"0\n-1\n",
        b"0\nx\n",
        b"0\n1\n1 0\n2 5\n",
        b"0\n2\n1 0\n",
        b"0\n1\n1\n",
        b"0\n1\n1 0 0\n",
        b"0\n1\n-1 0\n",
        b"0\n1\n1_0 0\n",
        b"0\n1\n\xd9\xa1 0\n",
        b"0\n1\n2147483648 0\n",
        b"0\n1\n1 9223372036854775808\n",
        b"0\n2\n1 0\n1 5\n",
        b"0\n2\n1 5\n2 5\n",
        b"0\n2\n2 0\n1 5\n",
        b"0\r\n0\r\n",
        b"\0" * 20,
    ],
)
def test_what_makes_no_sense_is_damage(text: bytes) -> None:
    disk = ModelDisk()
    disk.write_atomic(PATH, text)
    cache = EpochCache(disk, PATH)
    cache.assign(9, 9)
    with pytest.raises(StateDamaged, match=PATH):
        cache.load()
    assert cache.entries() == (EpochStart(9, 9),)


def test_a_missing_file_is_damage() -> None:
    with pytest.raises(StateDamaged, match="is missing"):
        loaded(ModelDisk())


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**6)), min_size=1, max_size=60),
    st.integers(0, 2**32),
)
def test_a_power_cut_leaves_an_old_file_a_new_one_or_damage(
    steps: list[tuple[int, int]], seed: int
) -> None:
    # KAFKA-16541: a file that was written but not synced came back cut, and was believed.
    disk = ModelDisk()
    cache = EpochCache(disk, PATH)
    cache.assign(1, 0)
    cache.flush(durable=True)
    versions = [cache.entries()]
    for raised, offset in steps:
        cache.assign((cache.latest() or 0) + raised, offset)
        cache.flush(durable=False)
        versions.append(cache.entries())
    disk.restart(seed)
    try:
        found = loaded(disk).entries()
    except StateDamaged:
        return
    assert found in versions
