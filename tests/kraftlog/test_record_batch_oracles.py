"""Three other implementations read what we write, and we read what they write.

kafka-python and aiokafka (its Cython code) with every compression. kio knows none, and keeps times
by the second, so it gets uncompressed batches with such times.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import NamedTuple, TypedDict

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kio.records import readers, schema, writers
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from kraftlog._codec import Codec
from kraftlog.record_batch import BatchOptions, Record, RecordBatch, encode_batch
from kraftlog.types import Buffer, Compression, TimestampType
from tests.kraftlog.batches import (
    EXAMPLE,
    batch_options,
    both_twins,
    every_compression,
    record_lists,
    using,
)

BUILDER_BYTES = 1 << 30
"""So large that no builder calls itself full."""


def import_kafka_python(name: str) -> ModuleType:
    """It uses what the standard library has deprecated, which is no failure of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module(name)


kafka_codec = import_kafka_python("kafka.codec")
kafka_records = import_kafka_python("kafka.record.default_records")


class Client(NamedTuple):
    """The reader and the writer of one implementation; the other has the same names."""

    batch: type[AiokafkaBatch]
    builder: type[AiokafkaBuilder]


KAFKA_PYTHON = Client(kafka_records.DefaultRecordBatch, kafka_records.DefaultRecordBatchBuilder)
AIOKAFKA = Client(AiokafkaBatch, AiokafkaBuilder)

each_client = pytest.mark.parametrize(
    "client", [KAFKA_PYTHON, AIOKAFKA], ids=["kafka-python", "aiokafka"]
)


@pytest.fixture(scope="module", autouse=True)
def snappy_for_kafka_python() -> Iterator[None]:
    """kafka-python wants python-snappy; the framing, which is what we test, is its own."""
    raw = SimpleNamespace(
        compress=lambda data: bytes(cramjam.snappy.compress_raw(data)),
        decompress=lambda data: bytes(cramjam.snappy.decompress_raw(data)),
    )
    before = vars(kafka_codec)["snappy"]
    vars(kafka_codec)["snappy"] = raw
    yield
    vars(kafka_codec)["snappy"] = before


def compare_header(ours: RecordBatch, theirs: AiokafkaBatch) -> None:
    assert theirs.magic == 2
    assert theirs.base_offset == ours.base_offset
    assert theirs.next_offset == ours.next_offset
    assert theirs.crc == ours.crc
    assert theirs.attributes == ours.attributes
    assert theirs.compression_type == ours.compression
    assert theirs.timestamp_type == ours.timestamp_type
    assert theirs.is_transactional == ours.is_transactional
    assert theirs.is_control_batch == ours.is_control
    assert theirs.first_timestamp == ours.base_timestamp
    assert theirs.max_timestamp == ours.max_timestamp
    assert theirs.producer_id == ours.producer_id
    assert theirs.producer_epoch == ours.producer_epoch
    assert theirs.base_sequence == ours.base_sequence


def read_theirs(batch: AiokafkaBatch) -> list[Record]:
    assert batch.validate_crc()
    return [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]


@both_twins
@every_compression
@each_client
@given(record_lists(), batch_options())
def test_clients_read_what_we_write(  # R27
    twin: Codec,
    compression: Compression,
    client: Client,
    records: list[Record],
    options: BatchOptions,
) -> None:
    options["compression"] = compression
    options["is_control"] = False  # the keys of control records have a form of their own
    with using(twin):
        data = encode_batch(records, **options)
    if options["timestamp_type"] is TimestampType.APPEND:
        highest = max(record.timestamp for record in records)
        records = [record._replace(timestamp=highest) for record in records]
    theirs = client.batch(data)
    assert read_theirs(theirs) == records
    compare_header(RecordBatch(data), theirs)


@both_twins
@every_compression
@each_client
@given(record_lists(dense=True), batch_options())
def test_we_read_what_clients_write(  # R27
    twin: Codec,
    compression: Compression,
    client: Client,
    records: list[Record],
    options: BatchOptions,
) -> None:
    producer = producer_options(options)
    if client is AIOKAFKA and records[0].timestamp < 0:
        # Its builder takes -1 for "no record yet", and the next record's time for the first one's.
        records[0] = records[0]._replace(timestamp=0)
    data = write_theirs(client, compression, records, producer)
    with using(twin):
        batch = RecordBatch(data)
        batch.check_for_produce()
        read = batch.records()
        again = encode_batch(read, **producer, leader_epoch=batch.leader_epoch)
    assert read == [record._replace(offset=row) for row, record in enumerate(records)]
    compare_header(batch, client.batch(data))
    # They leave a batch uncompressed that would not get smaller.
    if batch.compression is Compression.NONE:
        assert again.hex() == data.hex()


class ProducerOptions(TypedDict):
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool


NO_PRODUCER = ProducerOptions(
    producer_id=-1, producer_epoch=-1, base_sequence=-1, is_transactional=False
)


def producer_options(options: BatchOptions) -> ProducerOptions:
    """What a producer can say of its batch."""
    return ProducerOptions(
        producer_id=options["producer_id"],
        producer_epoch=options["producer_epoch"],
        base_sequence=options["base_sequence"],
        is_transactional=options["is_transactional"] and options["producer_id"] >= 0,
    )


def write_theirs(
    client: Client,
    compression: Compression,
    records: Sequence[Record],
    options: ProducerOptions,
) -> bytes:
    builder = client.builder(
        magic=2, compression_type=int(compression), batch_size=BUILDER_BYTES, **options
    )
    for row, record in enumerate(records):
        added = builder.append(
            row, record.timestamp, record.key, record.value, list(record.headers)
        )
        assert added is not None
    return bytes(builder.build())


@both_twins
@every_compression
@each_client
def test_batches_larger_than_one_block_of_their_codec(
    twin: Codec,
    compression: Compression,
    client: Client,
) -> None:
    """Snappy's frames hold 32 KiB, lz4's 64 KiB and zstd's 128 KiB."""
    records = [
        Record(row, 1_000 + row, b"key-%d" % row, b"%d " % row * (row % 60)) for row in range(3_000)
    ]
    with using(twin):
        data = encode_batch(records, compression=compression)
        assert read_theirs(client.batch(data)) == records
        theirs = write_theirs(client, compression, records, NO_PRODUCER)
        batch = RecordBatch(theirs)
        batch.check_crc()
        assert batch.compression is compression
        assert batch.records() == records


def test_kafka_python_reads_our_control_batch() -> None:
    """A marker's key is version and type (1 = commit), its value version and coordinator epoch."""
    marker = Record(9, 1_000, b"\0\0\0\1", bytes(6))
    data = encode_batch(
        [marker], is_control=True, is_transactional=True, producer_id=1, producer_epoch=0
    )
    batch = KAFKA_PYTHON.batch(data)
    assert batch.is_control_batch
    assert [(record.offset, record.commit) for record in batch] == [(9, True)]


whole_seconds = st.integers(0, 2**32)


@st.composite
def records_by_the_second(draw: st.DrawFn) -> list[Record]:
    records = draw(record_lists())
    seconds = draw(st.lists(whole_seconds, min_size=len(records), max_size=len(records)))
    return [
        record._replace(timestamp=second * 1_000)
        for record, second in zip(records, seconds, strict=True)
    ]


def to_kio(record: Record) -> schema.Record:
    return schema.Record(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(datetime.fromtimestamp(record.timestamp // 1_000, UTC)),
        offset=i64(record.offset),
        key=record.key,
        value=record.value,
        headers=tuple(
            schema.RecordHeader(key=key.encode(), value=value) for key, value in record.headers
        ),
    )


def read_kio(data: Buffer) -> schema.RecordBatch:
    batch, size = readers.read_batch(data, 0)
    assert size == len(data)
    return batch


@both_twins
@given(records_by_the_second(), batch_options())
def test_kio_reads_what_we_write(  # R27
    twin: Codec, records: list[Record], options: BatchOptions
) -> None:
    with using(twin):
        data = encode_batch(records, **options)
        ours = RecordBatch(data)
    theirs = read_kio(data)
    assert theirs.records == tuple(map(to_kio, records))
    assert theirs.base_offset == ours.base_offset
    assert theirs.partition_leader_epoch == ours.leader_epoch
    assert theirs.crc == ours.crc
    assert theirs.attributes == ours.attributes
    assert theirs.last_offset_delta == ours.last_offset_delta
    assert theirs.base_timestamp == ours.base_timestamp
    assert theirs.max_timestamp == ours.max_timestamp
    assert theirs.producer_id == ours.producer_id
    assert theirs.producer_epoch == ours.producer_epoch
    assert theirs.base_sequence == ours.base_sequence


@both_twins
@given(records_by_the_second(), batch_options())
def test_we_read_what_kio_writes(  # R27
    twin: Codec, records: list[Record], options: BatchOptions
) -> None:
    producer = producer_options(options) | {"is_transactional": False}
    out = io.BytesIO()
    writers.write_new_batch(
        out,
        schema.NewRecordBatch(
            producer_id=i64(producer["producer_id"]),
            producer_epoch=i16(producer["producer_epoch"]),
            base_sequence=i32(producer["base_sequence"]),
            records=tuple(map(to_kio, records)),
            attributes=i16(0),
        ),
    )
    with using(twin):
        batch = RecordBatch(out.getvalue())
        batch.check_crc()
        assert batch.records() == records
        again = encode_batch(records, **producer, leader_epoch=0)
    assert again.hex() == out.getvalue().hex()


@each_client
def test_the_oracles_notice_a_wrong_byte(client: Client) -> None:
    data = bytearray(encode_batch(EXAMPLE))
    data[-10] ^= 1
    assert not client.batch(bytes(data)).validate_crc()
