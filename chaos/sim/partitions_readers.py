"""Consumers in racks, who go where a leader sends them, and others who only ask for the ends.

What may be shown at all is judged where it is answered (`partitions_rules`). What only the one who
asks can know is judged here: to somebody who heeds leader epochs no end ever falls (P2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from brokers.cluster import PartitionId
from brokers.requests import LATEST_TIMESTAMP
from chaos.sim.partitions_broker import RACKS
from chaos.sim.partitions_cluster import PartitionsCluster
from kraftlog._check import invariant
from kraftlog.record_batch import read_batches
from kraftlog.rpc import broker_pb2
from metadata_log.image import Topic

READER_ID = 2_001
CONSUME_MS = 60.0
ENDS_MS = 60.0
MAX_WAIT_MS = 100
MAX_BYTES = 4_096
UNANSWERED_MAX = 3
"""After so many fetches without an answer the leader is asked again."""


@dataclass(slots=True)
class Reader:
    """One consumer of one partition."""

    rack: str
    offset: int = 0
    preferred: int | None = None
    """The replica that the leader named: asked until it refuses or is silent."""
    unanswered: int = 0


@dataclass(frozen=True, slots=True)
class KnownEnd:
    """The largest end that anybody was told, and the newest epoch in which anything was."""

    epoch: int = -1
    offset: int = 0


class Readers:
    def __init__(self, cluster: PartitionsCluster, topics: Sequence[str]) -> None:
        self._cluster = cluster
        self._topics = topics
        self._dice = cluster.dice("readers")
        self._readers: dict[tuple[str, PartitionId], Reader] = {}
        self._ends: dict[PartitionId, KnownEnd] = {}

    def begin(self) -> None:
        self._cluster.schedule.later(CONSUME_MS, self._consume)
        self._cluster.schedule.later(ENDS_MS, self._ask_end)

    def _draw(self) -> tuple[Topic, PartitionId] | None:
        image = self._cluster.metadata.image
        topics = [topic for name in self._topics if (topic := image.topic(name)) is not None]
        if not topics:
            return None
        topic = self._dice.choice(topics)
        return topic, PartitionId(topic.id.raw, self._dice.randrange(len(topic.partitions)))

    def _draw_target(self, topic: Topic, place: PartitionId) -> int:
        """Who leads; once in a while somebody asks who does not, or no more."""
        state = topic.partitions[place.partition]
        if state.leader == -1 or self._dice.random() < 0.3:
            return self._dice.choice(state.replicas)
        return state.leader

    # -- consuming

    def _consume(self) -> None:
        if self._cluster.is_over:
            return
        self._cluster.schedule.later(CONSUME_MS * 2 * self._dice.random(), self._consume)
        drawn = self._draw()
        if drawn is None:
            return
        topic, place = drawn
        rack = self._dice.choice(("", *RACKS))
        reader = self._readers.setdefault((rack, place), Reader(rack))
        if reader.unanswered >= UNANSWERED_MAX:
            reader.preferred, reader.unanswered = None, 0
        if self._dice.random() < 0.1:
            reader.offset = max(0, reader.offset - self._dice.randrange(20))
        target = self._draw_target(topic, place) if reader.preferred is None else reader.preferred
        reader.unanswered += 1
        raw = _fetch(place, reader).SerializeToString()
        self._cluster.send(READER_ID, target, raw, partial(self._on_fetched, reader))

    def _on_fetched(self, reader: Reader, raw: bytes) -> None:
        reader.unanswered = 0
        reply = broker_pb2.BrokerReply.FromString(raw)
        parts = [part for topic in reply.fetch.topics for part in topic.partitions]
        if reply.HasField("error") or any(part.HasField("error") for part in parts):
            reader.preferred = None
            return
        for part in parts:
            if part.HasField("preferred_replica"):
                reader.preferred = part.preferred_replica
            for batch in read_batches(part.records):
                reader.offset = batch.next_offset

    # -- ends

    def _ask_end(self) -> None:
        if self._cluster.is_over:
            return
        self._cluster.schedule.later(ENDS_MS * 2 * self._dice.random(), self._ask_end)
        drawn = self._draw()
        if drawn is None:
            return
        topic, place = drawn
        known = self._ends.get(place, KnownEnd())
        is_listed = self._dice.random() < 0.5
        request = _list_offsets(place) if is_listed else _ends(place, known.offset)
        target = self._draw_target(topic, place)
        take = partial(self.hear_end, place, known)
        self._cluster.send(READER_ID, target, request.SerializeToString(), take)

    def hear_end(self, place: PartitionId, before: KnownEnd, raw: bytes) -> None:
        """`before` is what was known when this was asked; what was told since may be newer."""
        answer = _told_end(broker_pb2.BrokerReply.FromString(raw))
        if answer is None or answer.epoch < before.epoch:
            return  # refused; or by one who led before, and who is not believed
        facts = {"partition": place.partition, "told": before, "now": answer}
        invariant(answer.offset >= before.offset, "P2 the end that consumers see fell", **facts)
        known = self._ends.get(place, KnownEnd())
        epoch, offset = max(known.epoch, answer.epoch), max(known.offset, answer.offset)
        self._ends[place] = KnownEnd(epoch, offset)
        self._cluster.sightings.note("end told")


def _fetch(place: PartitionId, reader: Reader) -> broker_pb2.BrokerRequest:
    message = broker_pb2.FetchDataRequest(
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        session_epoch=-1,
        rack=reader.rack,
    )
    message.topics.add(topic_id=place.topic_id).partitions.add(
        partition=place.partition,
        offset=reader.offset,
        log_start_offset=-1,
        max_bytes=MAX_BYTES,
    )
    return broker_pb2.BrokerRequest(fetch=message)


def _list_offsets(place: PartitionId) -> broker_pb2.BrokerRequest:
    message = broker_pb2.ListOffsetsRequest()
    part = message.topics.add(topic_id=place.topic_id).partitions.add(partition=place.partition)
    part.timestamp = LATEST_TIMESTAMP
    return broker_pb2.BrokerRequest(list_offsets=message)


def _ends(place: PartitionId, known_end: int) -> broker_pb2.BrokerRequest:
    message = broker_pb2.EndsRequest(max_wait_ms=MAX_WAIT_MS)
    message.topics.add(topic_id=place.topic_id).partitions.add(
        partition=place.partition, known_end=known_end
    )
    return broker_pb2.BrokerRequest(ends=message)


def _told_end(reply: broker_pb2.BrokerReply) -> KnownEnd | None:
    """None if it was refused."""
    if reply.HasField("list_offsets"):
        listed = reply.list_offsets.topics[0].partitions[0]
        return None if listed.HasField("error") else KnownEnd(listed.leader_epoch, listed.offset)
    end = reply.ends.topics[0].partitions[0]
    return None if end.HasField("error") else KnownEnd(end.leader_epoch, end.high_watermark)
