"""Batches as they travel: from columns to bytes, to Produce requests, and back to answers."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

from kraftlog._batch_format import CRC, CRC_POSITION, CRC_START
from kraftlog._client_wire import error_of, hint_of
from kraftlog.cluster_view import Hint
from kraftlog.delivery import NO_OFFSET
from kraftlog.errors import KraftError
from kraftlog.framing import Pieces, enclose
from kraftlog.record_batch import RecordBatch, encode_columns
from kraftlog.rpc import broker_pb2
from kraftlog.send_window import Batch, ProducerIdentity
from kraftlog.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Buffer,
    Compression,
)

_PRODUCER = struct.Struct(">qhi")
_PRODUCER_POSITION = 43

_TOPICS = broker_pb2.ProduceRequest.TOPICS_FIELD_NUMBER
_PARTITIONS = broker_pb2.ProduceTopic.PARTITIONS_FIELD_NUMBER
_RECORDS = broker_pb2.ProducePartition.RECORDS_FIELD_NUMBER

NOBODY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def encode(batch: Batch, compression: Compression) -> bytes | bytearray:
    """The batch under the identity and the number that it has now."""
    identity = batch.identity or NOBODY
    sequence = batch.base_sequence if batch.identity else NO_SEQUENCE
    if batch.encoded is None:
        timestamps = batch.delivery.timestamps
        batch.encoded = encode_columns(
            batch.values,
            timestamps=timestamps[batch.first : batch.first + batch.count],
            keys=batch.keys,
            headers=batch.headers,
            compression=compression,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
        )
        batch.values, batch.keys, batch.headers = [], [], None
    elif _PRODUCER.unpack_from(batch.encoded, _PRODUCER_POSITION) != (*identity, sequence):
        # What was sent once may still be on its way to a socket.
        if batch.attempts > 1 or not isinstance(batch.encoded, bytearray):
            batch.encoded = bytearray(batch.encoded)
        _PRODUCER.pack_into(batch.encoded, _PRODUCER_POSITION, *identity, sequence)
        crc = crc32c(memoryview(batch.encoded)[CRC_START:])
        CRC.pack_into(batch.encoded, CRC_POSITION, crc)
    return batch.encoded


def halves(batch: Batch) -> list[Batch]:
    """The two halves of a batch that is too large, in order."""
    records = RecordBatch(batch.encoded or b"").records()
    middle = len(records) // 2
    parts = []
    for first, rows in ((0, records[:middle]), (middle, records[middle:])):
        part = Batch(batch.delivery, batch.created)
        part.first = batch.first + first
        part.count = len(rows)
        part.values = [record.value for record in rows]
        part.keys = [record.key for record in rows]
        part.headers = [record.headers for record in rows]
        part.attempts = batch.attempts
        parts.append(part)
    parts[0].size = batch.size // 2
    parts[1].size = batch.size - parts[0].size
    return parts


class ProducePart(NamedTuple):
    """One batch of a request, and where it goes."""

    topic_id: bytes
    topic: str
    partition: int
    records: bytes | bytearray


def produce_request(parts: Sequence[ProducePart], *, acks: int, timeout_ms: int) -> Pieces:
    """A ProduceRequest, encoded around the batches."""
    topics: dict[tuple[bytes, str], list[Buffer]] = {}
    for part in parts:
        topic = topics.get((part.topic_id, part.topic))
        if topic is None:
            head = broker_pb2.ProduceTopic(topic_id=part.topic_id, name=part.topic)
            topic = topics[part.topic_id, part.topic] = [head.SerializeToString()]
        place = broker_pb2.ProducePartition(partition=part.partition).SerializeToString()
        topic += enclose(_PARTITIONS, (place, *enclose(_RECORDS, (part.records,))))
    request: list[Buffer] = [
        broker_pb2.ProduceRequest(acks=acks, timeout_ms=timeout_ms).SerializeToString()
    ]
    for topic in topics.values():
        request += enclose(_TOPICS, topic)
    return tuple(request)


class Produced(NamedTuple):
    """What became of one batch of a request."""

    base_offset: int = NO_OFFSET
    append_time: int = NO_TIMESTAMP
    error: KraftError | None = None
    hint: Hint | None = None


def decode_produced(reply: broker_pb2.ProduceReply, node: str) -> dict[tuple[bytes, int], Produced]:
    return {
        (topic.topic_id, part.partition): _produced(part, node)
        for topic in reply.topics
        for part in topic.partitions
    }


def _produced(part: broker_pb2.ProducePartitionReply, node: str) -> Produced:
    if part.HasField("error"):
        return Produced(error=error_of(part.error, node), hint=hint_of(part.error))
    return Produced(part.base_offset, part.append_time)
