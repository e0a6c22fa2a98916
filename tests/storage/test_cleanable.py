"""What of a log may be compacted, how dirty that is, and whether it is time."""

import logging

import pytest

from kraftlog.clock import ManualClock
from storage.cleanable import Cleanable, find_cleanable
from storage.compaction import CleanOptions, clean
from storage.log import Log
from storage.model_disk import ModelDisk
from storage.retention import apply_retention
from tests.storage.keyed import compacted_log, compacting, keyed, put, settle
from tests.storage.logs import TIME_MS


def filled(count: int = 12, log: Log | None = None) -> Log:
    """A log of several segments, all committed; the n-th record is n seconds young."""
    log = log or compacted_log(ModelDisk())
    for number in range(count):
        put(log, (b"%d" % number, b"." * 50), timestamp=TIME_MS + 1_000 * number)
    log.flush()
    log.high_watermark = log.end_offset
    return log


# -- how far


def test_everything_but_the_active_segment_may_be_compacted() -> None:  # R30
    log = filled()
    part = find_cleanable(log, 0, TIME_MS)
    assert (part.first_dirty_offset, part.end_offset) == (0, log.segments[-1].base_offset)
    assert part.dirty_bytes == log.size - log.segments[-1].size
    assert (part.clean_bytes, part.dirty_ratio) == (0, 1.0)


def test_a_log_of_one_segment_has_nothing_to_compact() -> None:  # R30
    for log in (compacted_log(ModelDisk()), filled(1)):
        part = find_cleanable(log, 0, TIME_MS)
        assert part.end_offset == part.first_dirty_offset
        assert not part.is_due(compacting(min_cleanable_dirty_ratio=0))


@pytest.mark.parametrize("limit", range(13))
def test_what_is_not_committed_is_left_alone(limit: int) -> None:
    log = filled()
    log.high_watermark = limit
    end = find_cleanable(log, 0, TIME_MS).end_offset
    assert end <= limit
    assert end in {segment.base_offset for segment in log.segments}


def test_what_is_not_flushed_is_left_alone() -> None:
    log = compacted_log(ModelDisk())
    filled(6, log)
    flushed = log.flushed_offset
    for number in range(6):
        put(log, (b"%d" % number, b"." * 50))
    log.roll()
    log.high_watermark = log.end_offset
    assert 0 < find_cleanable(log, 0, TIME_MS).end_offset <= flushed
    log.flush()
    assert find_cleanable(log, 0, TIME_MS).end_offset == log.end_offset


def test_an_open_transaction_holds_compaction_up() -> None:
    log = filled()
    begun = log.end_offset
    log.append(keyed((b"t", b"1"), producer=(7, 0, 0), is_transactional=True), leader_epoch=0)
    filled(6, log)
    settle(log)
    assert find_cleanable(log, 0, TIME_MS).end_offset <= begun
    marker = keyed((b"\0\0\0\1", b"\0\0\0\0\0\0"), producer=(7, 0, -1), is_control=True)
    log.append(marker, leader_epoch=0)
    settle(log)
    assert find_cleanable(log, 0, TIME_MS).end_offset == log.end_offset


def test_records_younger_than_the_min_lag_are_left_alone() -> None:  # R30
    config = compacting(min_compaction_lag_ms=60_000)
    log = settle(filled(12, compacted_log(ModelDisk(), config=config)))
    newest = [segment.max_timestamp.timestamp for segment in log.segments[:-1]]
    assert find_cleanable(log, 0, newest[0] + 59_999).end_offset == 0
    for segment, timestamp in zip(log.segments, newest, strict=False):
        assert find_cleanable(log, 0, timestamp + 60_000).end_offset == segment.next_offset


# -- where it begins


def test_the_clean_part_counts_for_the_dirty_ratio_only() -> None:
    log = filled()
    first, second = log.segments[:2]
    part = find_cleanable(log, second.base_offset, TIME_MS)
    assert (part.first_dirty_offset, part.clean_bytes) == (second.base_offset, first.size)
    inside = find_cleanable(log, second.base_offset + 1, TIME_MS)
    assert first.size < inside.clean_bytes < first.size + second.size
    assert inside.clean_bytes + inside.dirty_bytes == part.clean_bytes + part.dirty_bytes


def test_a_checkpoint_beyond_the_end_makes_all_of_it_dirty(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = filled()
    with caplog.at_level(logging.WARNING):
        assert find_cleanable(log, log.end_offset + 1, TIME_MS).first_dirty_offset == 0
    assert "all of it is dirty" in caplog.text


def test_a_checkpoint_below_the_first_segment_begins_with_that() -> None:
    log = filled()
    log.drop_oldest(2)
    assert find_cleanable(log, 0, TIME_MS).first_dirty_offset == log.segments[0].base_offset


# -- whether it is time


@pytest.mark.parametrize(
    ("clean_bytes", "dirty_bytes", "due"),
    [(100, 0, False), (100, 100, False), (100, 101, True), (0, 1, True), (0, 0, False)],
)
def test_it_is_time_when_more_than_the_dirty_ratio_is_dirty(  # R30
    clean_bytes: int, dirty_bytes: int, due: bool
) -> None:
    part = Cleanable(0, 10, clean_bytes, dirty_bytes, overdue=False)
    assert part.is_due(compacting(min_cleanable_dirty_ratio=0.5)) is due


def test_a_ratio_of_nothing_is_due_with_the_first_dirty_byte() -> None:
    part = Cleanable(0, 10, 10**12, 1, overdue=False)
    assert part.is_due(compacting(min_cleanable_dirty_ratio=0))


def test_past_the_max_lag_it_is_time_whatever_the_ratio() -> None:  # R30
    config = compacting(max_compaction_lag_ms=3_600_000, min_cleanable_dirty_ratio=1)
    log = settle(filled(12, compacted_log(ModelDisk(), config=config)))
    dirty = log.segments[2]
    oldest = dirty.first_timestamp or 0
    before = find_cleanable(log, dirty.base_offset, oldest + 3_600_000)
    assert (before.overdue, before.is_due(config)) == (False, False)
    after = find_cleanable(log, dirty.base_offset, oldest + 3_600_001)
    assert (after.overdue, after.is_due(config)) == (True, True)
    nothing_dirty = find_cleanable(log, log.end_offset, oldest + 10**9)
    assert not nothing_dirty.is_due(config)


def test_the_active_segment_is_closed_in_time_for_the_max_lag() -> None:  # R30
    config = compacting(1 << 20, max_compaction_lag_ms=5_000)
    log = filled(12, compacted_log(ModelDisk(), config=config))
    assert [segment.base_offset for segment in log.segments] == [0, 6]
    uncompacted = compacting(1 << 20, segment_ms=8_000)
    log = filled(12, compacted_log(ModelDisk(), config=uncompacted))
    assert [segment.base_offset for segment in log.segments] == [0, 9]


def test_both_policies_at_once_delete_by_age_what_compaction_left() -> None:  # R30
    clock = ManualClock(wall_ms=TIME_MS)
    config = compacting(delete=True, retention_ms=20_000, min_cleanable_dirty_ratio=0)
    log = settle(filled(12, compacted_log(ModelDisk(), config=config, clock=clock)))
    assert clean(log, 0, CleanOptions(clock=clock)).next_dirty_offset == 12
    ends = [segment.next_offset for segment in log.segments]
    clock.advance(26_000)
    gone = apply_retention(log, clock)
    assert 0 < gone < len(ends)
    assert log.start_offset == ends[gone - 1]
    part = find_cleanable(log, 0, clock.wall_ms())
    assert part.first_dirty_offset == log.start_offset
