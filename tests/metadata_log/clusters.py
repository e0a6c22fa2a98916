"""A cluster without processes: an image, and what the controller decides about it.

Whatever is decided goes through the codec, is applied, and leaves an image in which every rule
holds; so each test is also a test of that.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from kraftlog.config import Config
from kraftlog.config_keys import Scope
from kraftlog.types import TopicPartition, Uuid
from metadata_log.codec import decode, encode
from metadata_log.decide import Decision
from metadata_log.decide.bootstrap import bootstrap
from metadata_log.decide.brokers import Registered, Registration, register
from metadata_log.decide.features import SUPPORTED
from metadata_log.decide.fencing import fence, unfence
from metadata_log.decide.partitions import AlterPartitions, IsrChange, IsrMember, alter_partitions
from metadata_log.decide.topics import CreateTopics, NewTopic, create_topics
from metadata_log.image import EMPTY, Image
from metadata_log.places import Agenda, Place
from metadata_log.records import (
    Cause,
    CausedRecord,
    CauseKind,
    FenceCause,
    Listener,
    PartitionState,
)
from metadata_log.replay import replay_all
from metadata_log.rules import broken, broken_since

R = TypeVar("R")

CLUSTER_ID = Uuid(b"cluster id......")
STATIC = Config(Scope.CONTROLLER, {})
WHY = Cause(CauseKind.ADMIN_REQUEST, "a test")


def uuid(text: str, number: int) -> Uuid:
    """An id that can be recognized; never one of the reserved."""
    return Uuid(text.encode()[:8].ljust(8, b".") + number.to_bytes(8, "big"))


class Dice:
    """Chance from a seed; ids count."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.ids = 0

    def below(self, limit: int) -> int:
        return self.random.randrange(limit)

    def uuid(self) -> Uuid:
        self.ids += 1
        return uuid("topic", self.ids)


class NoDice(Dice):
    """Every turn begins at the first place, so that a test knows where things are."""

    def below(self, limit: int) -> int:
        assert limit > 0
        return 0


class Cluster:
    """The pending image of an active controller, and the log that made it."""

    def __init__(self, brokers: Iterable[int] = (), *, dice: Dice | None = None) -> None:
        self.image: Image = EMPTY
        self.log: list[CausedRecord] = []
        self.dice = dice or NoDice()
        self.static = STATIC
        self.starts = 0
        self.decided(bootstrap(self.image))
        for broker_id in brokers:
            self.start(broker_id)

    # -- applying

    def decided(self, decision: Decision[R]) -> R:
        """Apply the records of a decision as one batch, and check every rule."""
        before = self.image
        records = [decode(encode(each)) for each in decision.records]
        assert records == list(decision.records)
        self.image = replay_all(before, (each.record for each in records), before.end_offset)
        self.log += records
        self.check(before)
        return decision.response

    def check(self, before: Image) -> None:
        assert broken(self.image, self.static) == []
        assert broken_since(before, self.image) == []

    # -- brokers

    def registration(self, broker_id: int | None, rack: str | None = None) -> Registration:
        """What the next run of a broker says; `dataclasses.replace` makes it say other things."""
        self.starts += 1
        number = abs(broker_id or 90 + self.starts)
        return Registration(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=uuid("run", self.starts),
            listeners=(Listener("CLIENT", f"host{number}", 9_092),),
            log_dirs=(uuid("dir", number),),
            features=tuple(SUPPORTED.values()),
            rack=rack,
        )

    def register(self, broker_id: int | None, *, clean: bool = False) -> Registered:
        request = self.registration(broker_id)
        before = self.image.brokers.get(broker_id or 0)
        if clean and before is not None:
            request = replace(request, previous_epoch=before.epoch)
        return self.registered(request)

    def registered(self, request: Registration, *, alive: bool = False) -> Registered:
        while True:
            decision = register(
                self.image,
                request,
                cluster_id=CLUSTER_ID,
                next_offset=self.image.end_offset,
                alive=alive,
                taken=(101, 102, 103),
                static=self.static,
            )
            answer = self.decided(decision)
            if answer is not None:
                return answer

    def start(self, broker_id: int, *, clean: bool = False) -> None:
        """Register a new incarnation and unfence it."""
        self.register(broker_id, clean=clean)
        self.unfence(broker_id)

    def unfence(self, broker_id: int) -> None:
        agenda: Agenda | None = None
        while True:
            decision = unfence(self.image, broker_id, WHY, static=self.static, agenda=agenda)
            self.decided(decision)
            agenda = decision.agenda
            if agenda is None:
                return

    def fence(self, broker_id: int, cause: FenceCause = FenceCause.SESSION_TIMEOUT) -> None:
        agenda: Agenda | None = None
        while True:
            decision = fence(self.image, broker_id, cause, WHY, static=self.static, agenda=agenda)
            done = self.decided(decision)
            agenda = decision.agenda
            assert done == (agenda is None)
            if agenda is None:
                return

    # -- topics

    def create(
        self,
        name: str,
        *assignments: tuple[int, ...],
        configs: Mapping[str, str] | None = None,
        partitions: int | None = None,
        replication_factor: int | None = None,
    ) -> Uuid:
        wish = NewTopic(
            name=name,
            assignments=assignments,
            configs=configs or {},
            partitions=partitions,
            replication_factor=replication_factor,
        )
        request = CreateTopics((wish,))
        decision = create_topics(self.image, request, draw=self.dice, static=self.static)
        (outcome,) = self.decided(decision)
        if outcome.error is not None:
            raise outcome.error
        assert outcome.value is not None
        assert outcome.value.topic_id is not None
        return outcome.value.topic_id

    def place(self, topic: str, partition: int = 0) -> Place:
        found = self.image.topic(topic)
        assert found is not None
        return Place(found.id, partition)

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        return self.image.at(self.place(topic, partition))

    def isr_change(self, topic: str, *isr: int, partition: int = 0) -> IsrChange:
        """What a leader that is up to date asks for."""
        state = self.state(topic, partition)
        return IsrChange(
            topic_id=self.place(topic).topic_id,
            partition=partition,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            isr=tuple(IsrMember(broker, self._epoch(broker)) for broker in isr),
        )

    def _epoch(self, broker_id: int) -> int | None:
        broker = self.image.brokers.get(broker_id)
        return broker.epoch if broker is not None else None

    def alter(self, topic: str, *isr: int, partition: int = 0) -> PartitionState:
        """The leader says that these are in sync with it."""
        return self.altered(
            self.state(topic, partition).leader,
            self.isr_change(topic, *isr, partition=partition),
        )

    def altered(self, sender: int, change: IsrChange) -> PartitionState:
        request = AlterPartitions(sender, self.image.brokers[sender].epoch, (change,))
        (outcome,) = self.decided(alter_partitions(self.image, request, static=self.static))
        if outcome.error is not None:
            raise outcome.error
        assert outcome.value is not None
        return outcome.value


def partition(topic: str, number: int = 0) -> TopicPartition:
    return TopicPartition(topic, number)
