"""What a client's own code costs per record, without a socket. `python -m benchmarks.client`

Values of 100 bytes, one core, CPU time. Sending goes from `send()` to the bytes of a full batch;
reading from the bytes of a fetch, CRC checked, to what the caller gets. Each note has what
aiokafka's Cython takes for the bare encoding or decoding of the same records in the same run.
"""

import random
import sys
from collections.abc import Callable

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from benchmarks.harness import Benchmark, Cost, Row, main, median_cost
from kraftlog._intake import Intake
from kraftlog._produce_wire import encode
from kraftlog._producer_core import make_accumulator
from kraftlog.accumulator import Accumulator
from kraftlog.fetch_buffer import FetchBuffer
from kraftlog.offsets import Offset
from kraftlog.producer_options import ProducerOptions, producer_options
from kraftlog.record_batch import RecordBatch, encode_values
from kraftlog.record_reader import RecordReader
from kraftlog.records import Record
from kraftlog.types import Compression, TopicPartition

RECORDS = 100_000
CHUNK = 10_000
VALUE_BYTES = 100
PARTITIONS = 6
TIME_MS = 1_700_000_000_000
REPEAT = 5


class Sending:
    """Everything of a producer but its connections."""

    def __init__(self) -> None:
        self.options: ProducerOptions = producer_options("localhost:1", {"buffer_bytes": 1 << 40})
        self.accumulator: Accumulator = make_accumulator(self.options, "murmur2", lambda: None)
        self.accumulator.set_partitions("t", PARTITIONS, range(PARTITIONS))
        self.intake: Intake[bytes, bytes] = Intake(self.accumulator, "bytes", "bytes")

    def drain(self) -> None:
        """Make the bytes of all batches."""
        for queue in self.accumulator.active():
            while (batch := self.accumulator.take(queue)) is not None:
                encode(batch, Compression.NONE)
                batch.delivery.keep(0)
                self.accumulator.release(batch)


def _value() -> bytes:
    return random.Random(1).randbytes(VALUE_BYTES)


def _send_one_by_one(key: bytes | None) -> None:
    sending, value = Sending(), _value()
    offer = sending.intake.offer
    for _ in range(RECORDS):
        offer("t", value, key)
    sending.drain()


def _send_many(records: "list[Record[bytes, bytes] | bytes]") -> None:
    sending = Sending()
    for start in range(0, RECORDS, CHUNK):
        columns = sending.intake.columns("t", records[start : start + CHUNK])
        groups = sending.accumulator.group("t", columns)
        sending.accumulator.extend("t", groups)
    sending.drain()


def _encode_peer() -> None:
    value = _value()
    for start in range(0, RECORDS, CHUNK):
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 26,
        )
        for row in range(min(CHUNK, RECORDS - start)):
            builder.append(row, TIME_MS, None, value, [])
        builder.build()


def send(_directory: str) -> list[Row]:
    """From the caller's call to the bytes of a batch."""
    value = _value()
    plain: list[Record[bytes, bytes] | bytes] = [value] * RECORDS
    keyed: list[Record[bytes, bytes] | bytes] = [
        Record(value, b"%d" % number) for number in range(RECORDS)
    ]
    peer = median_cost(_encode_peer, REPEAT)
    return [
        _row("send()", lambda: _send_one_by_one(None), peer, 0.15),
        _row("send() with a key", lambda: _send_one_by_one(b"key"), peer, 0.15),
        _row("send_many of values", lambda: _send_many(plain), peer, 1.0),
        _row("send_many of Records with keys", lambda: _send_many(keyed), peer, 1.0),
    ]


def _fetched() -> list[bytes]:
    """A log of batches of 256 KiB or so."""
    rows, value = 2_000, _value()
    return [
        encode_values([value] * rows, timestamp=TIME_MS, base_offset=start)
        for start in range(0, RECORDS, rows)
    ]


def _reader(batches: list[bytes]) -> RecordReader[bytes, bytes]:
    place = TopicPartition("t", 0)
    buffer = FetchBuffer(
        partition_bytes=1 << 30,
        total_bytes=1 << 30,
        on_room=lambda: None,
        on_news=lambda: None,
    )
    buffer.assign({place: Offset.at(0)})
    state = buffer.state(place)
    buffer.place_at(state, 0, 0)
    buffer.put(state, (0, 0), [RecordBatch(batch) for batch in batches], watermark=RECORDS)
    return RecordReader(
        buffer,
        key_deserializer="bytes",
        value_deserializer="bytes",
        on_error="raise",
        check_crcs=True,
    )


def _poll(batches: list[bytes]) -> None:
    reader, seen = _reader(batches), 0
    while seen < RECORDS:
        seen += len(reader.read(500))


def _iterate(batches: list[bytes]) -> None:
    reader = _reader(batches)
    while (opened := reader.current()) is not None:
        for _record in reader.walk(opened):
            pass


def _to_arrow(batches: list[bytes]) -> None:
    reader = _reader(batches)
    while (view := reader.read_batch()) is not None:
        view.to_arrow()


def _decode_peer(batches: list[bytes]) -> None:
    for data in batches:
        batch = DefaultRecordBatch(data)
        batch.validate_crc()
        for _ in batch:
            pass


def read(_directory: str) -> list[Row]:
    """From the bytes of a fetch to what the caller gets."""
    batches = _fetched()
    peer = median_cost(lambda: _decode_peer(batches), REPEAT)
    return [
        _row("poll, 500 at a time", lambda: _poll(batches), peer, 1.0),
        _row("iterate", lambda: _iterate(batches), peer, 1.0),
        _row("batches to Arrow", lambda: _to_arrow(batches), peer, 5.0),
    ]


def _row(name: str, work: Callable[[], object], peer: Cost, target: float) -> Row:
    cost = median_cost(work, REPEAT)
    return Row(
        name=name,
        reached=RECORDS / cost.cpu_seconds / 1e6,
        unit="M records/s",
        target=target,
        more_is_better=True,
        cpu=cost.cpu_seconds / RECORDS * 1e6,
        per="record",
        note=f"aiokafka's codec alone {RECORDS / peer.cpu_seconds / 1e6:.2f} M",
    )


BENCHMARKS: dict[str, Benchmark] = {"send": send, "read": read}

if __name__ == "__main__":
    sys.exit(main(__doc__ or "", BENCHMARKS, sys.argv[1:]))
