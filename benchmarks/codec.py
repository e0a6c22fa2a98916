"""The codec between record batches and Arrow columns, next to aiokafka's Cython in the same minute.
`python -m benchmarks.codec`

One core, CPU time, millions of records a second. The targets are half of what a bare C prototype
reached for the same work (the middle of its range); aiokafka, in each note, makes no columns.
"""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from benchmarks.harness import Benchmark, Cost, Row, main, median_cost
from kraftlog import _codec
from kraftlog.arrow import arrow_columns, encode_arrow_batch, to_arrow
from kraftlog.record_batch import RecordBatch

TIME_MS = 1_700_000_000_000
MB = 1 << 20
KB = 1 << 10
KEY_BYTES = 8
CALLS = 10
REPEAT = 21
PROTOTYPE_PART = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of one batch, as columns."""

    keys: pa.Array
    values: pa.Array
    times: pa.Array

    def encode(self) -> bytes | bytearray:
        return encode_arrow_batch(
            self.values, timestamp=TIME_MS, keys=self.keys, timestamps=self.times
        )

    def __len__(self) -> int:
        return len(self.values)


def _sample(batch_bytes: int, value_bytes: int) -> Sample:
    dice = random.Random(1)
    rows = batch_bytes // (value_bytes + KEY_BYTES)
    return Sample(
        pa.array([b"%08d" % dice.randrange(10**KEY_BYTES) for _ in range(rows)], pa.binary()),
        pa.array([dice.randbytes(value_bytes) for _ in range(rows)], pa.binary()),
        pa.array([TIME_MS + row for row in range(rows)], pa.timestamp("ms", tz="UTC")),
    )


def _cost(call: Callable[[], object]) -> Cost:
    """Of one call, by several of them."""

    def calls() -> None:
        for _ in range(CALLS):
            call()

    cost = median_cost(calls, REPEAT)
    return Cost(cost.seconds / CALLS, cost.cpu_seconds / CALLS)


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured, and the range that the prototype reached."""

    name: str
    ours: Callable[[], object]
    peer: Callable[[], object]
    prototype: tuple[float, float]


def _row(case: Case, rows: int, batch_bytes: int) -> Row:
    cost, peer = _cost(case.ours), _cost(case.peer)
    target = PROTOTYPE_PART * sum(case.prototype) / 2
    note = (
        f"{batch_bytes / cost.cpu_seconds / MB:,.0f} MB/s, codec {_codec.codec.NAME}; "
        f"aiokafka {rows / peer.cpu_seconds / 1e6:.2f} M"
    )
    reached = rows / cost.cpu_seconds / 1e6
    cpu = cost.cpu_seconds / rows * 1e6
    return Row(case.name, reached, "M records/s", target, True, cpu, "record", note)


def _decode(data: bytes | bytearray) -> pa.RecordBatch:
    batch = RecordBatch(data)
    batch.check_crc()
    columns = arrow_columns()
    batch.to_arrow_columns(columns)
    return to_arrow(columns.finish())


def _decode_peer(data: bytes) -> None:
    batch = DefaultRecordBatch(data)
    batch.validate_crc()
    for _ in batch:
        pass


def _encode_peer(keys: list[bytes], values: list[bytes]) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=64 * MB,
    )
    for row, (key, value) in enumerate(zip(keys, values, strict=True)):
        builder.append(row, TIME_MS + row, key, value, [])
    return bytes(builder.build())


def decode(_directory: str) -> list[Row]:
    """Batches of 1 MB to an Arrow record batch, CRC checked."""
    rows = []
    for value_bytes, prototype in ((100, (16, 28)), (1_000, (2.8, 3.7))):
        sample = _sample(MB, value_bytes)
        data = bytes(sample.encode())
        case = Case(
            f"decode {value_bytes} B to Arrow",
            partial(_decode, data),
            partial(_decode_peer, data),
            prototype,
        )
        rows.append(_row(case, len(sample), len(data)))
    return rows


ENCODED = [
    ("1 MB", MB, 100, (18, 31)),
    ("1 MB", MB, 1_000, (3.3, 4.4)),
    ("16 KB", 16 * KB, 100, (7.7, 13.9)),
    ("16 KB", 16 * KB, 1_000, (1.6, 1.8)),
]


def encode(_directory: str) -> list[Row]:
    """Arrow columns to batches."""
    rows = []
    for size, batch_bytes, value_bytes, prototype in ENCODED:
        sample = _sample(batch_bytes, value_bytes)
        keys, values = sample.keys.to_pylist(), sample.values.to_pylist()
        case = Case(
            f"encode {value_bytes} B from Arrow, {size} batches",
            sample.encode,
            partial(_encode_peer, keys, values),
            prototype,
        )
        rows.append(_row(case, len(sample), len(sample.encode())))
    return rows


BENCHMARKS: dict[str, Benchmark] = {"decode": decode, "encode": encode}

if __name__ == "__main__":
    sys.exit(main("The record batch codec, measured.", BENCHMARKS, sys.argv[1:]))
