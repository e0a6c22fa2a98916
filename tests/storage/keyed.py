"""What the tests of compaction share: batches of keyed records, compacted logs, and what is in
them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypedDict, Unpack

from kraftlog.clock import Clock, ManualClock
from kraftlog.record_batch import Record, RecordBatch, encode_batch, read_batches
from kraftlog.types import Compression
from storage.compaction import CleanOptions, Outcome, clean
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from tests.storage.logs import TIME_MS, opened

Pair = tuple[bytes | None, bytes | None]

NO_PRODUCER = (-1, -1, -1)


class CompactSettings(TypedDict, total=False):
    segment_ms: int
    delete: bool
    retention_ms: int
    retention_bytes: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float


class BatchFields(TypedDict, total=False):
    base_offset: int
    timestamp: int
    compression: Compression
    producer: tuple[int, int, int]
    is_transactional: bool
    is_control: bool


def keyed(*pairs: Pair, **fields: Unpack[BatchFields]) -> bytearray:
    """A batch of (key, value) records, a millisecond apart."""
    base = fields.get("base_offset", 0)
    time = fields.get("timestamp", TIME_MS)
    producer_id, producer_epoch, base_sequence = fields.get("producer", NO_PRODUCER)
    records = [Record(base + n, time + n, key, value, ()) for n, (key, value) in enumerate(pairs)]
    return bytearray(
        encode_batch(
            records,
            base_offset=base,
            compression=fields.get("compression", Compression.NONE),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=fields.get("is_transactional", False),
            is_control=fields.get("is_control", False),
        )
    )


def compacting(segment_bytes: int = 300, **settings: Unpack[CompactSettings]) -> LogConfig:
    settings.setdefault("delete", False)
    return LogConfig(
        segment_bytes=segment_bytes, index_interval_bytes=100, compact=True, **settings
    )


def compacted_log(
    files: Files,
    directory: str = "/t-0",
    config: LogConfig | None = None,
    clock: Clock | None = None,
) -> Log:
    return opened(files, directory, config or compacting(), clock=clock or ManualClock())


def put(log: Log, *pairs: Pair, **fields: Unpack[BatchFields]) -> None:
    log.append(keyed(*pairs, **fields), leader_epoch=0)


def settle(log: Log) -> Log:
    """Seal, flush and commit all that is in the log, so that all of it may be compacted."""
    log.roll()
    log.flush()
    log.high_watermark = log.end_offset
    return log


def cleaned(log: Log, first_dirty: int = 0, *, clock: ManualClock | None = None) -> int:
    """Compact all that may be; returns where the next compaction begins."""
    result = clean(log, first_dirty, CleanOptions(clock=clock or ManualClock()))
    assert result.outcome is Outcome.DONE
    return result.next_dirty_offset


def batches_of(log: Log) -> list[RecordBatch]:
    """Every batch, by reading as a consumer would."""
    found: list[RecordBatch] = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, 1 << 20)
        found += read_batches(part.read())
        offset = part.next_offset
    return found


def view(records: Sequence[Record]) -> dict[bytes | None, bytes]:
    """What a reader knows who has read these records: the last value of each key."""
    known: dict[bytes | None, bytes] = {}
    for record in records:
        if record.value is None:
            known.pop(record.key, None)
        else:
            known[record.key] = record.value
    return known


def check_layout(log: Log) -> None:
    """Segments meet exactly, each holds what its end says, and offsets only grow."""
    for segment, following in pairwise(log.segments):
        assert segment.next_offset == following.base_offset
    for segment in log.segments:
        offset = segment.base_offset
        for _, batch in segment.batches(0):
            batch.check_crc()
            assert batch.base_offset >= offset
            offset = batch.next_offset
        assert offset == segment.next_offset
