"""What the tests of the log engine share: small batches, and logs opened the short way."""

from typing import TypedDict, Unpack

from kraftlog.clock import Clock, ManualClock
from kraftlog.record_batch import Record, encode_values, read_batches
from kraftlog.types import Compression
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.recovery import OpenOptions, open_log


class LogSettings(TypedDict, total=False):
    segment_ms: int
    retention_ms: int
    retention_bytes: int
    file_delete_delay_ms: int
    compact: bool
    delete: bool


TIME_MS = 1_700_000_000_000


def batch(
    *values: bytes,
    timestamp: int = TIME_MS,
    compression: Compression = Compression.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytearray:
    """A batch as a client sends it: base offset 0, no epoch. `producer` is (id, epoch, first
    sequence).
    """
    producer_id, producer_epoch, base_sequence = producer
    return bytearray(
        encode_values(
            list(values),
            timestamp=timestamp,
            base_offset=0,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )


def opened(
    files: Files,
    directory: str,
    config: LogConfig | None = None,
    *,
    clock: Clock | None = None,
    clean: bool = False,
    start_offset: int = 0,
    verify_all: bool = False,
) -> Log:
    options = OpenOptions(clean=clean, start_offset=start_offset, verify_all=verify_all)
    return open_log(files, directory, config or LogConfig(), clock or ManualClock(), options)


def small_segments(segment_bytes: int = 300, **settings: Unpack[LogSettings]) -> LogConfig:
    return LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100, **settings)


def records_of(log: Log, *, max_bytes: int = 1 << 20) -> list[Record]:
    """Everything in the log, by reading from its start to its end as a consumer would."""
    found: list[Record] = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, max_bytes)
        for view in read_batches(part.read()):
            view.check_crc()
            found.extend(view.records())
        offset = part.next_offset
    return [record for record in found if record.offset >= log.start_offset]


def values_of(log: Log) -> list[bytes | None]:
    return [record.value for record in records_of(log)]


def fill(log: Log, count: int, *, leader_epoch: int = 0, size: int = 50, first: int = 0) -> None:
    """Append `count` batches of one record; the value of the n-th begins with n."""
    for number in range(first, first + count):
        value = b"%d:" % number + b"." * size
        log.append(batch(value, timestamp=TIME_MS + number), leader_epoch=leader_epoch)
