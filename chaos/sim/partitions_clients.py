"""Producers and readers, beside administrators who move partitions and change their configs.

A producer is idempotent, has one batch per partition on its way, and repeats it until it is
acknowledged. What they are told is judged where it is said (`partitions_rules`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from chaos.sim.metadata_clients import AdminClients
from chaos.sim.metadata_requests import Wish, create_topic, draw_move
from chaos.sim.partitions_cluster import PartitionsCluster
from chaos.sim.partitions_readers import Readers
from kraftlog.record_batch import encode_columns
from kraftlog.rpc import broker_pb2
from metadata_log.image import Topic

TOPICS = ("kept", "flushed")
PRODUCERS = 2
PRODUCER_ID_BASE = 2_000
PRODUCE_MS = 90.0
TIMEOUT_MS = 700
RECORDS_MAX = 3
ACKS_ALL, ACKS_LEADER = -1, 1

Take = Callable[[bytes], None]


@dataclass(slots=True)
class Sending:
    """One producer and one partition."""

    number: int
    topic: str
    partition: int
    sequence: int = 0
    count: int = 0
    """Of the batch that is on its way; 0: none is."""
    data: bytes = b""
    attempt: int = 0
    acked: int = 0


class PartitionClients(AdminClients):
    def __init__(self, cluster: PartitionsCluster) -> None:
        super().__init__(cluster)
        self._partitions = cluster
        self._data_dice = cluster.dice("producers")
        self._readers = Readers(cluster, TOPICS)
        self._values = 0
        self.sendings: dict[tuple[int, str, int], Sending] = {}

    def begin(self) -> None:
        super().begin()
        for number in range(PRODUCERS):
            self._partitions.schedule.later(PRODUCE_MS, partial(self._produce_on, number))
        self._readers.begin()

    def _draw(self) -> Wish:
        image = self._partitions.metadata.image
        brokers = [node.node_id for node in self._partitions.brokers()]
        for name in TOPICS:
            if image.topic(name) is None:
                wish = create_topic(name, brokers, self._dice, factor=3)
                configs = wish.request.create_topics.topics[0].configs
                configs["min.insync.replicas"] = str(self._draw_min_insync())
                if name == "flushed":
                    configs["flush.before.ack"] = "true"
                return wish
        return draw_move(image, self._dice.choice(TOPICS), brokers, self._dice)

    def _draw_min_insync(self) -> int:
        """With one in sync it takes no more than one disk and one late news to lose records."""
        options = self._partitions.options
        risky = options.strength("broker_power_cuts") or options.strength("broker_wipes")
        return 2 if risky else self._dice.choice((1, 2, 2))

    # -- producing

    def _produce_on(self, number: int) -> None:
        """For ever, also after the faults: there must be progress then."""
        dice = self._data_dice
        again = partial(self._produce_on, number)
        self._partitions.schedule.later(PRODUCE_MS * 2 * dice.random(), again)
        topics = self._known_topics()
        if not topics:
            return
        topic = dice.choice(topics)
        partition = dice.randrange(len(topic.partitions))
        key = (number, topic.name, partition)
        sending = self.sendings.setdefault(key, Sending(number, topic.name, partition))
        if sending.count == 0:
            self._fill(sending)
            self._send_batch(sending)
        if dice.random() < 0.2:
            self._send_plain(topic, partition)

    def _known_topics(self) -> list[Topic]:
        image = self._partitions.metadata.image
        found = (image.topic(name) for name in TOPICS)
        return [topic for topic in found if topic is not None]

    def _fill(self, sending: Sending) -> None:
        sending.count = self._data_dice.randint(1, RECORDS_MAX)
        sending.data = self._encode(sending.count, sending.number, sending.sequence)

    def _encode(self, count: int, number: int | None, sequence: int) -> bytes:
        values = []
        for _ in range(count):
            self._values += 1
            values.append(b"v%d" % self._values)
        identity = (-1, -1, -1) if number is None else (PRODUCER_ID_BASE + number, 0, sequence)
        return bytes(
            encode_columns(
                values,
                timestamps=[self._values] * count,
                producer_id=identity[0],
                producer_epoch=identity[1],
                base_sequence=identity[2],
            )
        )

    def _send_batch(self, sending: Sending) -> None:
        sending.attempt += 1
        attempt, schedule = sending.attempt, self._partitions.schedule

        def take(raw: bytes) -> None:
            if sending.attempt == attempt:
                self._on_produced(sending, raw)

        def time_out() -> None:
            if sending.attempt == attempt and sending.count:
                self._send_batch(sending)

        schedule.later(TIMEOUT_MS * self._data_dice.uniform(0.8, 1.5), time_out)
        self._ask(sending.topic, sending.partition, sending.data, ACKS_ALL, take)

    def _on_produced(self, sending: Sending, raw: bytes) -> None:
        reply = broker_pb2.BrokerReply.FromString(raw).produce
        result = reply.topics[0].partitions[0]
        if result.HasField("error"):
            return  # asked again when its time is up
        sending.sequence += sending.count
        sending.count = 0
        sending.acked += 1

    def _send_plain(self, topic: Topic, partition: int) -> None:
        """Somebody who is content with the leader's word, and does not ask again."""
        data = self._encode(1, None, 0)
        self._ask(topic.name, partition, data, ACKS_LEADER, lambda _raw: None)

    def _ask(self, name: str, partition: int, data: bytes, acks: int, take: Take) -> None:
        topic = self._partitions.metadata.image.topic(name)
        if topic is None:
            return
        message = broker_pb2.ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS)
        part = message.topics.add(topic_id=topic.id.raw)
        part.partitions.add(partition=partition, records=data)
        raw = broker_pb2.BrokerRequest(produce=message).SerializeToString()
        target = self._leader_of(topic, partition)
        self._partitions.send(PRODUCER_ID_BASE, target, raw, take)

    def _leader_of(self, topic: Topic, partition: int) -> int:
        """As it is known; once in a while somebody asks who led before."""
        state = topic.partitions[partition]
        if state.leader == -1 or self._data_dice.random() < 0.3:
            return self._data_dice.choice(state.replicas)
        return state.leader

    # -- progress

    def progress(self) -> dict[tuple[str, int], int]:
        """How many batches were acknowledged, by partition."""
        found: dict[tuple[str, int], int] = {}
        for (_, topic, partition), sending in self.sendings.items():
            found[(topic, partition)] = found.get((topic, partition), 0) + sending.acked
        return found
