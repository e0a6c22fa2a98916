"""Retention by age and by size."""

import pytest

from kraftlog.clock import ManualClock
from storage.log import Log
from storage.model_disk import ModelDisk
from storage.retention import apply_retention
from tests.storage.logs import TIME_MS, batch, fill, opened, small_segments


def committed(log: Log) -> Log:
    log.high_watermark = log.end_offset
    return log


def test_segments_go_once_their_newest_record_is_too_old() -> None:  # R26
    clock = ManualClock(wall_ms=TIME_MS)
    log = opened(ModelDisk(), "/t-0", small_segments(retention_ms=1_000), clock=clock)
    for number in range(12):
        log.append(batch(b"x" * 50, timestamp=TIME_MS + 100 * number), leader_epoch=0)
    ends = [segment.max_timestamp.timestamp for segment in committed(log).segments]
    clock.advance(ends[1] - TIME_MS + 1_000)
    assert apply_retention(log, clock) == 1
    clock.advance(1)
    assert apply_retention(log, clock) == 1
    assert log.start_offset == log.segments[0].base_offset


def test_the_oldest_segments_go_while_the_rest_still_holds_the_wanted_bytes() -> None:  # R26
    log = opened(ModelDisk(), "/t-0", small_segments(retention_bytes=600))
    fill(log, 20)
    apply_retention(committed(log), ManualClock(wall_ms=TIME_MS))
    assert log.size >= 600
    assert log.size - log.segments[0].size < 600


def test_the_active_segment_stays_however_old_it_is() -> None:  # R26
    clock = ManualClock(wall_ms=TIME_MS * 2)
    log = opened(ModelDisk(), "/t-0", small_segments(retention_ms=1, retention_bytes=0))
    fill(log, 10)
    active = log.segments[-1]
    apply_retention(committed(log), clock)
    assert log.segments == (active,)


def test_what_is_not_committed_stays() -> None:
    log = opened(ModelDisk(), "/t-0", small_segments(retention_bytes=0))
    fill(log, 10)
    log.high_watermark = log.segments[1].next_offset
    assert apply_retention(log, ManualClock(wall_ms=TIME_MS)) == 2


def test_an_unlimited_log_keeps_everything() -> None:
    clock = ManualClock(wall_ms=TIME_MS * 2)
    log = opened(ModelDisk(), "/t-0", small_segments(retention_ms=-1, retention_bytes=-1))
    fill(log, 10)
    assert apply_retention(committed(log), clock) == 0


@pytest.mark.parametrize("delete", [True, False])
def test_a_compacted_log_drops_only_what_is_below_its_start(delete: bool) -> None:
    config = small_segments(retention_ms=1, compact=True, delete=delete)
    log = opened(ModelDisk(), "/t-0", config)
    fill(log, 20)
    log.advance_start(committed(log).segments[1].base_offset + 1)
    dropped = apply_retention(log, ManualClock(wall_ms=TIME_MS * 2))
    assert dropped == (len(log.segments) + dropped - 1 if delete else 1)


def test_records_without_a_timestamp_do_not_expire() -> None:
    log = opened(ModelDisk(), "/t-0", small_segments(retention_ms=1))
    for _ in range(10):
        log.append(batch(b"x" * 50, timestamp=-1), leader_epoch=0)
    assert apply_retention(committed(log), ManualClock()) == 0


def test_an_empty_log_has_nothing_to_retire() -> None:
    assert apply_retention(opened(ModelDisk(), "/t-0"), ManualClock()) == 0
