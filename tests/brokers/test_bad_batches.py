"""Batches that no producer should send: each is refused with Kafka's code, and the log stays as it
was, to the byte.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct

import pytest

from brokers.cluster import PartitionId
from kraftlog._batch_format import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LEADER_EPOCH_POSITION,
    MAGIC_POSITION,
    TRANSACTIONAL_BIT,
)
from kraftlog.errors import ErrorCode
from kraftlog.types import Compression
from storage.log_config import LogConfig
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.kraftlog.batches import with_crc
from tests.storage.logs import TIME_MS, batch

CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
TIMESTAMP = ErrorCode.INVALID_TIMESTAMP

BYTE, INT16, INT32, INT64 = Struct(">b"), Struct(">h"), Struct(">i"), Struct(">q")
PRODUCER = Struct(">qhi")

LEADER_EPOCH = range(LEADER_EPOCH_POSITION, MAGIC_POSITION)
"""The one field that may be anything: the leader writes it anew."""


class Log:
    """A log with one record, and what becomes of batches sent to it."""

    def __init__(self, cluster: Cluster, place: PartitionId, directory: Path) -> None:
        self._cluster = cluster
        self._place = place
        self._segment = directory / "b1" / "t-0" / f"{0:020d}.log"

    @property
    def state(self) -> tuple[int, bytes]:
        end = self._cluster.brokers[1].partition(self._place).end_offset
        return end, self._segment.read_bytes()

    async def code(self, data: bytes | bytearray, acks: int = 1) -> int:
        """The code with which a batch is refused; 0: it is not."""
        result = await self._cluster.produce_batch(self._place, data, acks=acks)
        assert (result.base_offset == -1) == (result.error is not None)
        return 0 if result.error is None else result.error.code


async def started(cluster: Cluster, directory: Path, config: LogConfig | None = None) -> Log:
    place = await cluster.create("t", replicas=(1,), log=config)
    log = Log(cluster, place, directory)
    assert await log.code(batch(b"before")) == 0
    return log


def flips(data: bytearray) -> Iterator[tuple[str, bytearray]]:
    for position in range(len(data)):
        if position in LEADER_EPOCH:
            continue
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            yield f"bit {bit} of byte {position}", damaged


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
@async_test
async def test_every_bit_that_flips_on_the_way_is_noticed(
    tmp_path: Path, compression: Compression
) -> None:
    # P10
    async with Cluster(tmp_path, count=1) as cluster:
        log = await started(cluster, tmp_path)
        before = log.state
        for what, damaged in flips(batch(b"a value", b"another", compression=compression)):
            assert await log.code(damaged) in (CORRUPT, INVALID), what
        assert log.state == before


Field = tuple[str, int, Struct, Sequence[int], int]

WRONG_FIELDS: list[Field] = [
    ("base offset", 0, INT64, (1, 7, 2**62), INVALID),
    ("negative base offset", 0, INT64, (-1, -(2**63)), CORRUPT),
    ("batch length", 8, INT32, (-1, 0, HEADER_BYTES - 13, 2**31 - 1), CORRUPT),
    ("magic", 16, BYTE, (-1, 0, 1, 3, 127), CORRUPT),
    ("codec", 21, INT16, (5, 6, 7), CORRUPT),
    ("unknown attributes", 21, INT16, (0x80, 0x100, 0x4000, -1), CORRUPT),
    ("bits of the broker", 21, INT16, (APPEND_TIME_BIT, DELETE_HORIZON_BIT), INVALID),
    ("control", 21, INT16, (CONTROL_BIT, CONTROL_BIT | TRANSACTIONAL_BIT), INVALID),
    ("last offset delta", 23, INT32, (2, 1000, 2**31 - 1), INVALID),
    ("last offset delta of too few", 23, INT32, (0, -1, -(2**31)), CORRUPT),
    ("producer id alone", 43, PRODUCER, (5, -1, -1), INVALID),
    ("producer epoch alone", 43, PRODUCER, (-1, 0, -1), INVALID),
    ("sequence alone", 43, PRODUCER, (-1, -1, 0), INVALID),
    ("no producer epoch", 43, PRODUCER, (5, -1, 0), INVALID),
    ("no sequence", 43, PRODUCER, (5, 0, -1), INVALID),
    ("negative producer id", 43, PRODUCER, (-2, 0, 0), INVALID),
    ("record count", 57, INT32, (0, 1), INVALID),
    ("record count beyond the offsets", 57, INT32, (3, 1000, -1, -(2**31)), CORRUPT),
    ("base timestamp", 27, INT64, (TIME_MS + 1, TIME_MS - 1, 0, 2**62), TIMESTAMP),
    ("max timestamp", 35, INT64, (TIME_MS + 1, TIME_MS - 1, -1, 2**62), TIMESTAMP),
    ("record length", 61, BYTE, (0, 1, -1, 127), INVALID),
]


def wrong(field: Field) -> Iterator[tuple[str, bytes]]:
    """One field at a time is wrong, and the CRC is that of the wrong batch."""
    name, position, form, values, _ = field
    written = [values] if form is PRODUCER else [(value,) for value in values]
    for each in written:
        data = batch(b"a value", b"another")
        form.pack_into(data, position, *each)
        yield f"{name} {each}", with_crc(data)


@pytest.mark.parametrize("field", WRONG_FIELDS, ids=lambda field: field[0])
@async_test
async def test_every_field_that_is_wrong_is_refused(tmp_path: Path, field: Field) -> None:
    # P10
    async with Cluster(tmp_path, count=1) as cluster:
        log = await started(cluster, tmp_path)
        before = log.state
        for what, data in wrong(field):
            for acks in (1, -1):
                assert await log.code(data, acks) == field[4], what
        assert log.state == before


@async_test
async def test_sequences_out_of_order_and_old_epochs_are_refused(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        log = await started(cluster, tmp_path)
        assert await log.code(batch(b"a", producer=(5, 2, 0))) == 0
        before = log.state
        out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await log.code(batch(b"a", producer=(5, 2, 2))) == out_of_order
        assert await log.code(batch(b"a", producer=(5, 3, 1))) == out_of_order
        assert await log.code(batch(b"a", producer=(5, 1, 1))) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert log.state == before


@async_test
async def test_transactions_are_refused_by_name(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        log = await started(cluster, tmp_path)
        before = log.state
        data = batch(b"a", producer=(5, 0, 0))
        INT16.pack_into(data, 21, TRANSACTIONAL_BIT)
        assert await log.code(data) == CORRUPT  # the bit has flipped, says the CRC
        assert await log.code(with_crc(data)) == ErrorCode.UNSUPPORTED_VERSION
        assert log.state == before


@async_test
async def test_what_is_not_one_whole_batch_is_refused(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        log = await started(cluster, tmp_path)
        before = log.state
        good = batch(b"a value")
        for size in range(len(good)):
            assert await log.code(good[:size]) == CORRUPT, size
        for more in (b"x", b"\0" * 61, good):
            assert await log.code(good + more) == INVALID
        assert log.state == before
        assert await log.code(good) == 0


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
@async_test
async def test_records_too_far_from_now_are_refused(
    tmp_path: Path, compression: Compression
) -> None:
    now_ms = time.time_ns() // 1_000_000
    config = LogConfig(timestamp_before_max_ms=600_000, timestamp_after_max_ms=600_000)
    async with Cluster(tmp_path, count=1) as cluster:
        place = await cluster.create("t", replicas=(1,), log=config)
        log = Log(cluster, place, tmp_path)
        assert await log.code(batch(b"a", timestamp=now_ms, compression=compression)) == 0
        before = log.state
        for far in (-3_600_000, 3_600_000):
            data = batch(b"a", timestamp=now_ms + far, compression=compression)
            assert await log.code(data) == TIMESTAMP
        assert log.state == before
        assert await log.code(batch(b"a", timestamp=-1, compression=compression)) == 0


# R33
@async_test
async def test_max_message_bytes_is_the_last_size_that_is_taken(tmp_path: Path) -> None:
    limit = 1_000
    async with Cluster(tmp_path, count=1) as cluster:
        log = await started(cluster, tmp_path, LogConfig(max_message_bytes=limit))
        overhead = len(batch(b"x" * 500)) - 500
        largest = batch(b"x" * (limit - overhead))
        assert len(largest) == limit
        before = log.state
        assert await log.code(batch(b"x" * (limit - overhead + 1))) == ErrorCode.MESSAGE_TOO_LARGE
        assert log.state == before
        assert await log.code(largest) == 0
        assert log.state[0] == before[0] + 1
