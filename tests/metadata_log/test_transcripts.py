"""Stories of what the controller decides: tests/metadata_log/transcripts/*.txt.

A command is a verb and words; `name=value` gives what is not the default. Records are shown with
their offset and, behind the bar, their cause; then what is different in the image. A refusal is
shown by its name, Kafka's number and its text, and changes nothing.

broker ID                    register it and unfence it; `none`: hand an id out. rack=
register ID                  a new run of a broker. alive previous= incarnation= dirs= cluster=
heartbeat ID                 applied= fence shutdown moved= active= epoch=
fence ID CAUSE, unfence ID, release ID, unregister ID
create NAME A,B,C ...        by hand, one list a partition. config.KEY=
create-topic NAME ...        partitions= rf= config.KEY= dry
add-partitions NAME COUNT, delete NAME
alter NAME-N A,B             AlterPartition. by= leader-epoch= partition-epoch= epochs= recovering
elect KIND NAME-N ..., rebalance, reassign NAME-N A,B, cancel NAME-N
set, unset, append, subtract RESOURCE KEY=VALUE ...      topic:NAME, broker:ID or brokers
feature NAME LEVEL           downgrade unsafe
producer-ids ID              the next block
request CLIENT N TOPIC       create a topic, once
show                         every broker and partition
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from kraftlog.errors import KraftError
from kraftlog.types import TopicPartition, Uuid
from metadata_log.decide import Decision, Outcome
from metadata_log.decide.brokers import Registration, register
from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.decide.elections import ElectLeaders, elect_leaders, rebalance
from metadata_log.decide.features import FeatureUpdate, UpdateFeatures, update_features
from metadata_log.decide.fencing import fence, release, unfence, unregister
from metadata_log.decide.heartbeats import Heartbeat, heartbeat
from metadata_log.decide.partitions import AlterPartitions, IsrMember, alter_partitions
from metadata_log.decide.producer_ids import allocate_producer_ids
from metadata_log.decide.reassign import Reassignment, reassign
from metadata_log.decide.requests import answered, with_answer
from metadata_log.decide.topics import (
    CreatePartitions,
    CreateTopics,
    NewPartitions,
    NewTopic,
    TopicRef,
    create_partitions,
    create_topics,
    delete_topics,
)
from metadata_log.effective import ALL_BROKERS
from metadata_log.election import Election
from metadata_log.image import EMPTY, Image
from metadata_log.records import (
    Cause,
    CauseKind,
    FeatureRange,
    FenceCause,
    PartitionState,
    Recovery,
    Resource,
    ResourceType,
)
from tests.metadata_log.clusters import CLUSTER_ID, Cluster, uuid
from tests.metadata_log.shown import broker_text, image_lines, record_lines, state_text
from tests.transcript import replay

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
CONFIG = "config."
R = TypeVar("R")


class Words:
    """The words of a command: plain ones in order, and those with a name."""

    def __init__(self, words: Sequence[str]) -> None:
        self.named = dict(word.split("=", 1) for word in words if "=" in word)
        self.plain = [word for word in words if "=" not in word]

    def flag(self, name: str) -> bool:
        if name not in self.plain:
            return False
        self.plain.remove(name)
        return True

    def number(self, name: str, default: int) -> int:
        return int(self.named.get(name, default))

    def optional(self, name: str) -> int | None:
        return int(self.named[name]) if name in self.named else None

    def configs(self) -> dict[str, str]:
        named = self.named.items()
        return {k.removeprefix(CONFIG): v for k, v in named if k.startswith(CONFIG)}


def brokers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


class Story:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.before: Image = EMPTY
        self.seen = len(self.cluster.log)

    @property
    def image(self) -> Image:
        return self.cluster.image

    def run(self, command: str) -> list[str]:
        verb, *words = command.split()
        self.before, self.seen = self.image, len(self.cluster.log)
        try:
            said: list[str] = getattr(self, "do_" + verb.replace("-", "_"))(Words(words))
        except KraftError as error:
            assert self.image is self.before  # M4
            return [refusal(error)]
        records = self.cluster.log[self.seen :]
        return [
            *record_lines(self.before, self.image, records),
            *image_lines(self.before, self.image),
            *said,
        ]

    def all_steps(self, decision: Decision[R]) -> list[str]:
        self.cluster.decided(decision)
        return [] if decision.agenda is None else [f"  {len(decision.agenda)} left"]

    def outcomes(self, decision: Decision[tuple[Outcome[R], ...]]) -> list[str]:
        said = []
        for outcome in self.cluster.decided(decision):
            if isinstance(outcome.value, PartitionState):
                said.append(f"  answer: {state_text(outcome.value)}")
            said += [refusal(outcome.error)] if outcome.error is not None else []
        return said

    # -- brokers

    def do_broker(self, words: Words) -> list[str]:
        request = self._registration(words)
        answer = self.cluster.registered(request)
        self.cluster.unfence(answer.broker_id)
        return []

    def _registration(self, words: Words) -> Registration:
        broker_id = None if words.plain[0] == "none" else int(words.plain[0])
        request = self.cluster.registration(broker_id, words.named.get("rack"))
        if "incarnation" in words.named:
            request = replace(request, incarnation_id=uuid("run", words.number("incarnation", 0)))
        if "dirs" in words.named:
            named = words.named["dirs"]
            numbers = brokers(named) if named != "none" else ()
            directories = tuple(uuid("dir", number) for number in numbers)
            if named == "0":
                directories = (Uuid(bytes(16)),)
            request = replace(request, log_dirs=directories)
        if "cluster" in words.named:
            request = replace(request, cluster_id=uuid(words.named["cluster"], 0))
        if "levels" in words.named:
            low, high = brokers(words.named["levels"])
            request = replace(request, features=(FeatureRange("metadata.version", low, high),))
        return replace(request, previous_epoch=words.optional("previous"))

    def do_register(self, words: Words) -> list[str]:
        alive = words.flag("alive")
        decision = register(
            self.image,
            self._registration(words),
            cluster_id=CLUSTER_ID,
            next_offset=self.image.end_offset,
            alive=alive,
            taken=(101, 102, 103),
        )
        answer = self.cluster.decided(decision)
        assert answer is not None
        return [f"  answer: broker {answer.broker_id}, epoch {answer.broker_epoch}"]

    def do_heartbeat(self, words: Words) -> list[str]:
        broker_id = int(words.plain[0])
        known = self.image.brokers.get(broker_id)
        request = Heartbeat(
            broker_id=broker_id,
            broker_epoch=words.number("epoch", known.epoch if known else 0),
            applied_offset=words.number("applied", self.image.end_offset),
            want_fence=words.flag("fence"),
            want_shut_down=words.flag("shutdown"),
        )
        decision = heartbeat(
            self.image,
            request,
            shutdown_offset=words.optional("moved"),
            active_offset=words.number("active", 0),
        )
        said = self.all_steps(decision)
        reply = decision.response
        words_of_reply = [
            name
            for name in ("is_caught_up", "is_fenced", "should_shut_down", "has_moved")
            if getattr(reply, name)
        ]
        return [*said, f"  answer: {' '.join(words_of_reply) or 'go on'}"]

    def do_fence(self, words: Words) -> list[str]:
        cause = FenceCause[words.plain[1]]
        why = Cause(CauseKind.SESSION_TIMEOUT, "no heartbeat for 9.0 s")
        if cause is not FenceCause.SESSION_TIMEOUT:
            why = Cause(CauseKind.ADMIN_REQUEST, "a story")
        return self.all_steps(fence(self.image, int(words.plain[0]), cause, why))

    def do_unfence(self, words: Words) -> list[str]:
        why = Cause(CauseKind.HEARTBEAT, "caught up")
        return self.all_steps(unfence(self.image, int(words.plain[0]), why))

    def do_release(self, words: Words) -> list[str]:
        why = Cause(CauseKind.ADMIN_REQUEST, "a story")
        return self.all_steps(release(self.image, int(words.plain[0]), why))

    def do_unregister(self, words: Words) -> list[str]:
        return self.all_steps(unregister(self.image, int(words.plain[0]), by="by admin"))

    # -- topics

    def do_create(self, words: Words) -> list[str]:
        name, *lists = words.plain
        topic = NewTopic(name=name, assignments=tuple(map(brokers, lists)), configs=words.configs())
        return self._create(topic, words)

    def do_create_topic(self, words: Words) -> list[str]:
        dry = words.flag("dry")
        topics = tuple(
            NewTopic(
                name=name,
                partitions=words.optional("partitions"),
                replication_factor=words.optional("rf"),
                configs=words.configs(),
            )
            for name in words.plain or [""]
        )
        request = CreateTopics(topics, validate_only=dry)
        return self.outcomes(create_topics(self.image, request, draw=self.cluster.dice))

    def _create(self, topic: NewTopic, words: Words) -> list[str]:
        topic = replace(topic, partitions=words.optional("partitions"))
        topic = replace(topic, replication_factor=words.optional("rf"))
        request = CreateTopics((topic,))
        return self.outcomes(create_topics(self.image, request, draw=self.cluster.dice))

    def do_add_partitions(self, words: Words) -> list[str]:
        name, count, *lists = words.plain
        request = CreatePartitions((NewPartitions(name, int(count), tuple(map(brokers, lists))),))
        return self.outcomes(create_partitions(self.image, request, draw=self.cluster.dice))

    def do_delete(self, words: Words) -> list[str]:
        refs = tuple(TopicRef(name=name) for name in words.plain)
        if "id" in words.named:
            refs = (TopicRef(topic_id=uuid(words.named["id"], 7)),)
        return self.outcomes(delete_topics(self.image, refs))

    # -- partitions

    def do_alter(self, words: Words) -> list[str]:
        recovering = words.flag("recovering")
        where = partition(words.plain[0])
        topic = self.image.topic(where.topic)
        state = self.image.partition(topic.id, where.partition) if topic else None
        isr = words.plain[1] if len(words.plain) > 1 else ""
        sender = words.number("by", state.leader if state else 1)
        change = self.cluster.isr_change("a", 1) if state is None else None
        if change is None:
            change = self.cluster.isr_change(where.topic, partition=where.partition)
        if state is None:
            topic_id = topic.id if topic else uuid("nowhere", 1)
            change = replace(change, topic_id=topic_id, partition=where.partition)
        change = replace(
            change,
            isr=self._members(brokers(isr) if isr else (), words.named.get("epochs")),
            leader_epoch=words.number("leader-epoch", change.leader_epoch),
            partition_epoch=words.number("partition-epoch", change.partition_epoch),
            recovery=Recovery.RECOVERING if recovering else Recovery.RECOVERED,
        )
        epoch = words.number("epoch", self.image.brokers[sender].epoch)
        request = AlterPartitions(sender, epoch, (change,) * words.number("times", 1))
        return self.outcomes(alter_partitions(self.image, request))

    def _members(self, ids: tuple[int, ...], epochs: str | None) -> tuple[IsrMember, ...]:
        if epochs is not None:
            given = [None if each == "-" else int(each) for each in epochs.split(",")]
            return tuple(map(IsrMember, ids, given))
        known = {broker.id: broker.epoch for broker in self.image.sorted_brokers()}
        return tuple(IsrMember(broker, known.get(broker)) for broker in ids)

    def do_elect(self, words: Words) -> list[str]:
        election = Election(words.plain[0])
        partitions = tuple(map(partition, words.plain[1:])) or None
        decision = elect_leaders(self.image, ElectLeaders(election, partitions))
        outcomes = self.cluster.decided(decision)
        return [refusal(outcome.error) for _, outcome in outcomes if outcome.error is not None]

    def do_rebalance(self, _words: Words) -> list[str]:
        return self.all_steps(rebalance(self.image))

    def do_reassign(self, words: Words) -> list[str]:
        where, target = words.plain
        return self.outcomes(
            reassign(self.image, (Reassignment(partition(where), brokers(target)),))
        )

    def do_cancel(self, words: Words) -> list[str]:
        wishes = tuple(Reassignment(partition(where), None) for where in words.plain)
        return self.outcomes(reassign(self.image, wishes))

    # -- the rest

    def do_set(self, words: Words) -> list[str]:
        return self._configure(words, Operation.SET)

    def do_unset(self, words: Words) -> list[str]:
        words.named |= dict.fromkeys(words.plain[1:], "")
        return self._configure(words, Operation.DELETE)

    def do_append(self, words: Words) -> list[str]:
        return self._configure(words, Operation.APPEND)

    def do_subtract(self, words: Words) -> list[str]:
        return self._configure(words, Operation.SUBTRACT)

    def _configure(self, words: Words, operation: Operation) -> list[str]:
        kind, _, name = words.plain[0].partition(":")
        resource = ALL_BROKERS
        if kind != "brokers":
            resource = Resource(ResourceType[kind.upper()], name)
        changes = tuple(ConfigChange(k, operation, v) for k, v in words.named.items())
        request = AlterConfigs((ResourceChanges(resource, changes),))
        return self.outcomes(alter_configs(self.image, request))

    def do_feature(self, words: Words) -> list[str]:
        downgrade, unsafe = words.flag("downgrade"), words.flag("unsafe")
        name, level = words.plain
        update = FeatureUpdate(name, int(level), allow_downgrade=downgrade, unsafe=unsafe)
        supported = {
            "metadata.version": FeatureRange("metadata.version", 1, 3),
            "group.version": FeatureRange("group.version", 0, 1),
        }
        request = UpdateFeatures((update,))
        return self.outcomes(update_features(self.image, request, supported=supported))

    def do_producer_ids(self, words: Words) -> list[str]:
        broker_id = int(words.plain[0])
        epoch = words.number("epoch", self.image.brokers[broker_id].epoch)
        block = self.cluster.decided(allocate_producer_ids(self.image, broker_id, epoch))
        return [f"  answer: {block.first_id} to {block.first_id + block.count - 1}"]

    def do_request(self, words: Words) -> list[str]:
        client, number, name = words.plain
        known = answered(self.image, client.encode(), int(number))
        if known is not None:
            return [f"  answer from memory: {known.decode()}"]
        request = CreateTopics((NewTopic(name=name, assignments=((1,),)),))
        decision = create_topics(self.image, request, draw=self.cluster.dice)
        result = f"created-{name}".encode()
        self.cluster.decided(with_answer(decision, client.encode(), int(number), result))
        return [f"  answer: {result.decode()}"]

    def do_show(self, _words: Words) -> list[str]:
        return [
            *(f"broker {each.id}: {broker_text(each)}" for each in self.image.sorted_brokers()),
            *(
                f"{topic.name}-{number}: {state_text(state)}"
                for topic in self.image.sorted_topics()
                for number, state in enumerate(topic.partitions)
            ),
        ]


def refusal(error: KraftError) -> str:
    return f"  {type(error).__name__} {int(error.code)}: {error}"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    replay(path, Story().run, rewrite=bool(request.config.getoption("--rewrite")))
