"""Compaction: after any number of them a reader still learns the last value of every key."""

from typing import Literal, NamedTuple

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kraftlog.clock import ManualClock
from kraftlog.errors import OutOfOrderSequence
from kraftlog.record_batch import Record
from kraftlog.types import Compression
from storage.compaction import CleanOptions, Outcome, clean, group_segments
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk
from storage.segment import Segment
from tests.storage.keyed import (
    NO_PRODUCER,
    Pair,
    batches_of,
    check_layout,
    cleaned,
    compacted_log,
    compacting,
    keyed,
    put,
    settle,
    view,
)
from tests.storage.logs import TIME_MS, opened, records_of

DELETE_RETENTION_MS = 5_000
CONFIG = compacting(delete_retention_ms=DELETE_RETENTION_MS)


# -- against a dict


class Round(NamedTuple):
    """Some appends, and then a compaction with a map of `slots` entries."""

    batches: list[tuple[list[Pair], int, Compression]]
    wait_ms: int
    slots: int
    forgets: bool
    rolls: bool
    reopens: Literal["no", "cleanly", "uncleanly", "without snapshots"]


KEYS = st.one_of(st.binary(max_size=1), st.sampled_from([b"a", b"b", b"c"]), st.none())
VALUES = st.one_of(st.binary(max_size=60), st.none())
BATCHES = st.tuples(
    st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3),
    st.integers(-2, 1),
    st.sampled_from([Compression.NONE, Compression.NONE, Compression.LZ4]),
)
ROUNDS = st.builds(
    Round,
    batches=st.lists(BATCHES, max_size=15),
    wait_ms=st.integers(0, 2 * DELETE_RETENTION_MS),
    slots=st.integers(5, 8),
    forgets=st.booleans(),
    rolls=st.booleans(),
    reopens=st.sampled_from(["no", "cleanly", "uncleanly", "without snapshots"]),
)


class Expected:
    """A log beside what must be in it: a dict for its readers, and every record that compaction
    may not have taken.
    """

    def __init__(self) -> None:
        self.disk = ModelDisk()
        self.clock = ManualClock(wall_ms=TIME_MS)
        self.log = compacted_log(self.disk, config=CONFIG, clock=self.clock)
        self.values: dict[bytes, bytes] = {}
        self.records: list[Record] = []
        self.horizons: dict[int, int] = {}
        self.sequences: dict[int, int] = {}
        self.first_dirty = 0

    def append(self, pairs: list[Pair], producer_id: int, compression: Compression) -> None:
        producer = NO_PRODUCER
        if producer_id >= 0:
            producer = (producer_id, 0, self.sequences.get(producer_id, 0))
            self.sequences[producer_id] = producer[2] + len(pairs)
        time = self.clock.wall_ms()
        data = keyed(*pairs, timestamp=time, producer=producer, compression=compression)
        first = self.log.append_from_client(data, leader_epoch=0).base_offset
        for n, (key, value) in enumerate(pairs):
            self.records.append(Record(first + n, time + n, key, value, ()))
            if key is not None and value is None:
                self.values.pop(key, None)
            elif key is not None and value is not None:
                self.values[key] = value

    def compact(self, *, slots: int, forgets: bool) -> None:
        """With a map of so few slots that several passes are needed."""
        self.log.flush()
        self.log.high_watermark = self.log.end_offset
        active = self.log.segments[-1:]
        bytes_before = [segment.log.pread(segment.size, 0) for segment in active]
        options = CleanOptions(dedupe_buffer_bytes=24 * slots, clock=self.clock)
        result = clean(self.log, 0 if forgets else self.first_dirty, options)
        event(f"passes: {min(result.stats.passes, 5)}")
        assert result.outcome is Outcome.DONE
        assert self.log.segments[-1:] == active
        assert [segment.log.pread(segment.size, 0) for segment in active] == bytes_before
        assert result.next_dirty_offset == (active[0].base_offset if active else 0)
        self.first_dirty = result.next_dirty_offset
        if result.stats.passes:
            self._expect_compacted(self.first_dirty)

    def _expect_compacted(self, end_offset: int) -> None:
        now = self.clock.wall_ms()
        below = [record for record in self.records if record.offset < end_offset]
        last = {record.key: record for record in below}
        kept = [record for record in below if record.key is not None and last[record.key] is record]
        for record in kept:
            self.horizons.setdefault(record.offset, now + DELETE_RETENTION_MS)
        kept = [r for r in kept if r.value is not None or now < self.horizons[r.offset]]
        self.records[: len(below)] = kept

    def reopen(self, *, is_clean: bool, keeps_snapshots: bool) -> None:
        if is_clean:
            self.log.close()
        names = self.disk.list_dir("/t-0") if self.disk.is_dir("/t-0") else []
        for name in names:
            if name.endswith(".snapshot") and not keeps_snapshots:
                self.disk.remove(f"/t-0/{name}")
        self.log = opened(self.disk, "/t-0", CONFIG, clock=self.clock, clean=is_clean)

    def check(self) -> None:
        found = records_of(self.log)
        assert view([record for record in found if record.key is not None]) == self.values
        assert found == self.records
        check_layout(self.log)
        for producer_id, sequence in self.sequences.items():
            later = keyed((b"k", b"v"), producer=(producer_id, 0, sequence + 1))
            with pytest.raises(OutOfOrderSequence, match=f"expected {sequence} "):
                self.log.append_from_client(later, leader_epoch=0)


@given(st.lists(ROUNDS, max_size=6))
def test_readers_learn_the_last_value_of_every_key_whatever_was_compacted(  # R30
    rounds: list[Round],
) -> None:
    expected = Expected()
    for each in rounds:
        for batch in each.batches:
            expected.append(*batch)
        expected.clock.advance(each.wait_ms)
        if each.rolls:
            expected.log.roll()
        expected.compact(slots=each.slots, forgets=each.forgets)
        expected.check()
        if each.reopens != "no":
            expected.reopen(
                is_clean=each.reopens == "cleanly",
                keeps_snapshots=each.reopens != "without snapshots",
            )
            expected.check()


# -- what it promises, one by one


def test_a_map_too_small_for_all_keys_takes_several_passes() -> None:  # R30
    log = compacted_log(ModelDisk())
    for number in range(60):
        put(log, (b"%d" % (number % 30), b"%d" % number))
    settle(log)
    result = clean(log, 0, CleanOptions(dedupe_buffer_bytes=24 * 12, clock=ManualClock()))
    assert result.stats.passes >= 6
    assert result.stats.keys >= 60
    assert [record.offset for record in records_of(log)] == list(range(30, 60))


def test_a_tombstone_outlives_the_value_and_goes_with_the_next_work_after_its_time() -> None:  # R30
    clock = ManualClock(wall_ms=TIME_MS)
    log = compacted_log(ModelDisk(), config=CONFIG, clock=clock)
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    dirty = cleaned(settle(log), clock=clock)
    assert [record.value for record in records_of(log)] == [None]
    for ms, left in ((DELETE_RETENTION_MS - 1, 1), (1, 0)):
        clock.advance(ms)
        put(log, (b"b", b"x"))
        dirty = cleaned(settle(log), dirty, clock=clock)
        assert sum(record.key == b"a" for record in records_of(log)) == left


def test_the_last_batch_of_each_producer_stays_and_tells_a_retry() -> None:
    disk = ModelDisk()
    log = compacted_log(disk)
    for sequence in range(3):
        put(log, (b"a", b"%d" % sequence), producer=(7, 0, sequence))
    put(log, (b"a", b"newest"))
    put(log, (b"b", b"x" * 200))
    cleaned(settle(log))
    kept = [(b.base_offset, b.count) for b in batches_of(log) if b.producer_id == 7]
    assert (2, 0) in kept
    log.close()
    for name in disk.list_dir("/t-0"):
        if name.endswith(".snapshot"):
            disk.remove(f"/t-0/{name}")
    again = opened(disk, "/t-0", compacting(), clean=True)
    retry = keyed((b"a", b"2"), producer=(7, 0, 2))
    assert again.append_from_client(retry, leader_epoch=0).duplicate
    assert (
        again.append_from_client(
            keyed((b"a", b"3"), producer=(7, 0, 3)), leader_epoch=0
        ).base_offset
        == again.end_offset - 1
    )


def test_segments_meet_even_where_nothing_is_left_of_one() -> None:
    log = compacted_log(ModelDisk())
    for number in range(30):
        put(log, (b"only", b"%d" % number + b"." * 40))
    ends = {segment.next_offset for segment in settle(log).segments}
    cleaned(log)
    check_layout(log)
    assert {segment.next_offset for segment in log.segments} <= ends
    assert [record.offset for record in records_of(log)] == [29]
    for offset in range(30):
        assert log.read(offset, 1).next_offset > offset


def test_small_neighbours_become_one_segment() -> None:
    log = compacted_log(ModelDisk())
    for number in range(30):
        put(log, (b"only", b"%d" % number))
    dirty = cleaned(settle(log))
    before = len(log.segments)
    put(log, (b"only", b"last"))
    cleaned(settle(log), dirty)
    assert len(log.segments) < before / 2
    assert all(segment.size <= 300 for segment in log.segments)
    assert view(records_of(log)) == {b"only": b"last"}


def test_small_neighbours_become_one_even_if_all_of_their_records_stay() -> None:
    log = compacted_log(ModelDisk())
    for number in range(3):
        put(log, (b"%d" % number, b"x"))
        log.roll()
    records = records_of(log)
    cleaned(settle(log))
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    assert records_of(log) == records


def test_groups_respect_bytes_index_and_offsets() -> None:
    def segment(base_offset: int, next_offset: int, size: int) -> Segment:
        made = Segment.create(disk, "/t-0", base_offset, index_interval_bytes=100)
        made.size, made.next_offset = size, next_offset
        return made

    disk = ModelDisk()
    disk.make_dir("/t-0")
    a, b, c = segment(0, 10, 100), segment(10, 2**31, 150), segment(2**31, 2**31 + 1, 51)
    roomy = LogConfig(segment_bytes=1_000)
    assert group_segments([a, b, c], compacting(300)) == [[a, b], [c]]
    assert group_segments([a, b, c], compacting(240)) == [[a], [b, c]]
    assert group_segments([a, b, c], roomy) == [[a, b], [c]]
    assert group_segments([b, c], roomy) == [[b, c]]
    few_entries = LogConfig(segment_bytes=1_000, index_interval_bytes=100, index_bytes_max=30)
    assert group_segments([a, b, c], few_entries) == [[a], [b], [c]]


def test_what_is_clean_already_is_not_written_again() -> None:
    log = compacted_log(ModelDisk())
    for number in range(12):
        put(log, (b"%d" % number, b"." * 100))
    cleaned(settle(log))
    segments = log.segments
    cleaned(log)
    assert log.segments == segments


def test_transactions_keep_their_markers_and_what_may_still_count() -> None:
    log = compacted_log(ModelDisk())
    put(log, (b"a", b"certain"), (b"b", b"certain"))
    put(log, (b"a", b"maybe"), (b"a", b"perhaps"), producer=(7, 0, 0), is_transactional=True)
    put(log, (b"\0\0\0\0", b"\0\0\0\0\0\0"), producer=(7, 0, -1), is_control=True)
    put(log, (b"b", b"newer"))
    cleaned(settle(log))
    assert [record.offset for record in records_of(log)] == [0, 2, 3, 4, 5]


def test_time_lookups_find_records_behind_an_emptied_batch() -> None:
    log = compacted_log(ModelDisk(), config=compacting(10_000))
    put(log, (b"a", b"1"), timestamp=TIME_MS, producer=(7, 0, 0))
    put(log, (b"a", b"2"), timestamp=TIME_MS + 5)
    put(log, (b"b", b"3"), timestamp=TIME_MS + 9)
    cleaned(settle(log))
    assert [batch.count for batch in batches_of(log)] == [0, 1, 1]
    for timestamp, offset in ((TIME_MS, 1), (TIME_MS + 6, 2)):
        found = log.offset_for_time(timestamp)
        assert found is not None
        assert found.offset == offset


@pytest.mark.parametrize("target", range(31))
@pytest.mark.parametrize("rolls", [False, True])
def test_a_compacted_log_may_be_cut_anywhere(target: int, rolls: bool) -> None:
    disk = ModelDisk(seed=target)
    log = compacted_log(disk)
    for number in range(30):
        put(log, (b"%d" % (number * number % 11), b"%d" % number))
    cleaned(settle(log))
    left = [record for record in records_of(log) if record.offset < target]
    end = log.truncate_to(target)
    assert end <= target
    if rolls:
        log.roll()
    assert [record.offset for record in records_of(log)] == [record.offset for record in left]
    check_layout(log)
    disk.restart(target)
    again = compacted_log(disk)
    assert (again.end_offset, records_of(again)) == (end, left)
    put(again, (b"more", b"x"))
    cleaned(settle(again))
    assert records_of(again)[-1].key == b"more"
