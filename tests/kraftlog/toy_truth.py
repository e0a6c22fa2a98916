"""What the toy brokers share: the topics, with real logs, and who is said to lead them."""

from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.clock import SystemClock
from kraftlog.errors import (
    FencedLeaderEpoch,
    KraftError,
    NotLeaderError,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
    to_wire,
)
from kraftlog.rpc import broker_pb2, common_pb2
from kraftlog.types import Uuid
from storage.files import OsFiles
from storage.log import Log
from storage.log_config import LogConfig
from storage.recovery import OpenOptions, open_log


@dataclass
class ToyPartition:
    log: Log
    leader: int
    epoch: int = 0


@dataclass
class ToyTopic:
    name: str
    topic_id: Uuid
    partitions: list[ToyPartition] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)


class Truth:
    """One log per partition, whichever broker leads it: what a real cluster replicates."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = OsFiles()
        self.cluster_id = Uuid.random()
        self.topics: dict[str, ToyTopic] = {}
        self.ports: dict[int, int] = {}
        self.running: set[int] = set()
        self.offset = 1
        self.next_producer_id = 1_000
        self.auto_create: int = 0
        self.controllers: dict[int, int] = {101: 1}
        """Their ports."""
        self.controller_id: int | None = 101
        self.rack_of: dict[int, str] = {}
        self.follower_for_rack: dict[str, int] = {}
        """Whom a leader sends consumers of a rack to."""

    def add_topic(self, name: str, partitions: int, config: LogConfig | None = None) -> ToyTopic:
        topic = ToyTopic(name, Uuid.random())
        self._grow(topic, partitions, config)
        self.topics[name] = topic  # whole: brokers look at it from a thread of their own
        self.offset += 1
        return topic

    def grow(self, name: str, partitions: int, config: LogConfig | None = None) -> None:
        self._grow(self.topics[name], partitions, config)
        self.offset += 1

    def _grow(self, topic: ToyTopic, partitions: int, config: LogConfig | None) -> None:
        brokers = sorted(self.ports) or [1]
        for number in range(len(topic.partitions), partitions):
            directory = self._directory / f"{topic.name}-{number}-{topic.topic_id}"
            log = open_log(
                self._files,
                str(directory),
                config or LogConfig(),
                SystemClock(),
                OpenOptions(topic_id=topic.topic_id),
            )
            topic.partitions.append(ToyPartition(log, brokers[number % len(brokers)]))

    def drop_topic(self, name: str) -> None:
        for partition in self.topics.pop(name).partitions:
            partition.log.discard()
        self.offset += 1

    def lead(self, name: str, number: int, broker: int) -> None:
        """Another leader, in the next epoch."""
        partition = self.topics[name].partitions[number]
        partition.leader, partition.epoch = broker, partition.epoch + 1
        self.offset += 1

    def find(self, name: str, topic_id: bytes, number: int) -> ToyPartition:
        by_id = {each.topic_id.raw: each for each in self.topics.values()}
        topic = by_id.get(topic_id) if topic_id else self.topics.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            raise UnknownTopicOrPartition(f"no partition {name}-{number}")
        return topic.partitions[number]

    def led(
        self, broker: int, name: str, topic_id: bytes, *, number: int, epoch: int | None = None
    ) -> ToyPartition:
        """A partition that this broker leads."""
        partition = self.find(name, topic_id, number)
        if partition.leader != broker:
            raise NotLeaderError(f"broker {broker} does not lead {name}-{number}")
        if epoch is not None and epoch < partition.epoch:
            raise FencedLeaderEpoch(f"epoch {epoch} of {name}-{number} is over")
        return partition

    def error(self, error: KraftError, partition: ToyPartition | None = None) -> common_pb2.Error:
        code, text, hint = to_wire(error)
        wire = common_pb2.Error(code=code, message=text, hint=hint)
        if partition is not None and isinstance(error, NotLeaderError | FencedLeaderEpoch):
            wire.leader.epoch = partition.epoch
            if partition.leader in self.ports:
                wire.leader.leader.CopyFrom(self.node(partition.leader))
        return wire

    def endpoint(self, broker: int) -> common_pb2.Endpoint:
        return common_pb2.Endpoint(host="127.0.0.1", port=self.ports[broker])

    def node(self, broker: int) -> common_pb2.NodeEndpoint:
        return common_pb2.NodeEndpoint(node_id=broker, endpoint=self.endpoint(broker))

    def metadata(self, request: broker_pb2.MetadataRequest) -> broker_pb2.MetadataReply:
        wanted = [topic.name for topic in request.topics]
        for name in wanted:
            if name not in self.topics and self.auto_create and request.allow_auto_create:
                self.add_topic(name, self.auto_create)
        names = sorted(self.topics) if request.all_topics else wanted
        return broker_pb2.MetadataReply(
            cluster_id=self.cluster_id.raw,
            offset=self.offset,
            brokers=[
                broker_pb2.BrokerNode(
                    node_id=broker, endpoint=self.endpoint(broker), rack=self.rack_of.get(broker)
                )
                for broker in sorted(self.running)
            ],
            controllers=[
                common_pb2.NodeEndpoint(
                    node_id=node_id, endpoint=common_pb2.Endpoint(host="127.0.0.1", port=port)
                )
                for node_id, port in self.controllers.items()
            ],
            controller_id=self.controller_id,
            topics=[self._describe(name) for name in names],
        )

    def _describe(self, name: str) -> broker_pb2.TopicMetadata:
        topic = self.topics.get(name)
        if topic is None:
            error = UnknownTopicOrPartition(f"no topic {name}")
            return broker_pb2.TopicMetadata(name=name, error=self.error(error))
        return broker_pb2.TopicMetadata(
            name=name,
            topic_id=topic.topic_id.raw,
            partitions=[
                broker_pb2.PartitionMetadata(
                    partition=number,
                    leader_id=each.leader,
                    leader_epoch=each.epoch,
                    replicas=sorted(self.ports),
                    isr=sorted(self.ports),
                )
                for number, each in enumerate(topic.partitions)
            ],
        )

    def close(self) -> None:
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.log.discard()


def offset_at(partition: ToyPartition, timestamp: int) -> tuple[int, int]:
    """Offset and timestamp of a ListOffsets query."""
    log = partition.log
    if timestamp == -1:
        return log.end_offset, -1
    if timestamp == -2:
        return log.start_offset, -1
    found = log.offset_of_max_timestamp() if timestamp == -3 else log.offset_for_time(timestamp)
    return (found.offset, found.timestamp) if found else (-1, -1)


def read_records(
    partition: ToyPartition, wanted: broker_pb2.FetchPartition, room: int
) -> broker_pb2.FetchPartitionReply:
    """What a fetch of one partition finds; OffsetOutOfRange if its offset is none."""
    log = partition.log
    reply = broker_pb2.FetchPartitionReply(
        partition=wanted.partition,
        high_watermark=log.end_offset,
        log_start_offset=log.start_offset,
    )
    if wanted.HasField("last_fetched_epoch"):
        end = log.end_for_epoch(wanted.last_fetched_epoch)
        if end is not None and (
            end.epoch < wanted.last_fetched_epoch or end.end_offset < wanted.offset
        ):
            reply.diverging.CopyFrom(
                broker_pb2.EpochEnd(epoch=end.epoch, end_offset=end.end_offset)
            )
            return reply
    if not log.start_offset <= wanted.offset <= log.end_offset:
        raise OffsetOutOfRange(f"{wanted.offset} is not in {log.start_offset}..{log.end_offset}")
    if room > 0:
        reply.records = log.read(wanted.offset, min(room, wanted.max_bytes)).read()
    return reply
