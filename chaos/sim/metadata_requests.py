"""What administrators ask for, drawn by lot from what there is; and whether it was done as told.

A request is judged by the images before and after the batch that says it is done: all of its
effects are in that batch and nothing else of it (M10), and what was refused left no trace (M4).
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from chaos.sim.metadata_ledger import Done
from chaos.sim.metadata_rpc import Reply, Request
from kraftlog._check import invariant
from kraftlog.rpc import controller_pb2
from metadata_log.image import Image

NAMES = ("t1", "t2", "t3", "t4", "t5")
PARTITIONS_MAX = 3

Check = Callable[[Reply, Done], None]


@dataclass(frozen=True, slots=True)
class Wish:
    request: Request
    check: Check


def draw_wish(image: Image, brokers: list[int], dice: Random) -> Wish:
    """Something that makes sense in this image; the active controller's may be another one."""
    topics = sorted(topic.name for topic in image.sorted_topics())
    if len(topics) < 2 or dice.random() < 0.25:
        return create_topic(dice.choice(NAMES), brokers, dice)
    topic = dice.choice(topics)
    draws = (_delete, _add_partitions, _configure, _configure, _reassign, _reassign, _elect)
    if dice.random() < 0.08:
        return dice.choice((_fence, _unregister))(dice.choice(brokers), dice)
    return dice.choice(draws)(image, topic, brokers, dice)


def draw_move(image: Image, topic: str, brokers: list[int], dice: Random) -> Wish:
    """Something about the replicas of a topic that leaves it three of them."""
    if dice.random() < 0.5:
        return _elect(image, topic, brokers, dice, clean=True)
    target = dice.sample(brokers, min(3, len(brokers)))
    return _reassign(image, topic, brokers, dice, target)


# -- topics


def create_topic(name: str, brokers: list[int], dice: Random, factor: int | None = None) -> Wish:
    factor = factor or dice.randint(1, min(3, len(brokers)))
    topic = controller_pb2.NewTopic(
        name=name, partitions=dice.randint(1, PARTITIONS_MAX), replication_factor=factor
    )
    if dice.random() < 0.3:
        topic.configs["min.insync.replicas"] = str(dice.randint(1, 3))
    request = Request(create_topics=controller_pb2.CreateTopicsRequest(topics=[topic]))

    def check(reply: Reply, done: Done) -> None:
        result, after = reply.create_topics.topics[0], done.after.topic(name)
        facts = {"topic": name, "reply": result, "offset": done.offset}
        if result.HasField("error"):
            _left_no_trace(done, facts)
            return
        fresh = done.before.topic(name) is None and after is not None
        invariant(fresh, "M10 a topic is not made where it is said to be", **facts)
        whole = after is not None and len(after.partitions) == topic.partitions
        invariant(whole, "M10 a topic in part", **facts)

    return Wish(request, check)


def _delete(_image: Image, name: str, _brokers: list[int], _dice: Random) -> Wish:
    ref = controller_pb2.TopicRef(name=name)
    request = Request(delete_topics=controller_pb2.DeleteTopicsRequest(topics=[ref]))

    def check(reply: Reply, done: Done) -> None:
        result = reply.delete_topics.topics[0]
        facts = {"topic": name, "reply": result, "offset": done.offset}
        if result.HasField("error"):
            _left_no_trace(done, facts)
            return
        gone = done.before.topic(name) is not None and done.after.topic(name) is None
        invariant(gone, "M10 a topic is not gone where it is said to be", **facts)

    return Wish(request, check)


def _add_partitions(image: Image, name: str, _brokers: list[int], dice: Random) -> Wish:
    topic = image.topic(name)
    count = (len(topic.partitions) if topic else 1) + dice.choice((0, 1, 1))
    new = controller_pb2.NewPartitions(topic=name, count=count)
    request = Request(create_partitions=controller_pb2.CreatePartitionsRequest(topics=[new]))

    def check(reply: Reply, done: Done) -> None:
        result = reply.create_partitions.topics[0]
        facts = {"topic": name, "reply": result, "offset": done.offset}
        if result.HasField("error"):
            _left_no_trace(done, facts)
            return
        after = done.after.topic(name)
        there = after is not None and len(after.partitions) == count
        invariant(there, "M10 partitions are not there", **facts)

    return Wish(request, check)


# -- configs


def _configure(_image: Image, name: str, _brokers: list[int], dice: Random) -> Wish:
    key, value = dice.choice(
        (
            ("min.insync.replicas", str(dice.randint(1, 3))),
            ("retention.ms", str(dice.randint(1, 10_000))),
            ("unclean.leader.election.enable", dice.choice(("false", "false", "true"))),
        )
    )
    changes = controller_pb2.ResourceChanges(
        resource=controller_pb2.ConfigResource(type=controller_pb2.RESOURCE_TYPE_TOPIC, name=name),
        changes=[controller_pb2.ConfigChange(name=key, value=value)],
    )
    request = Request(alter_configs=controller_pb2.AlterConfigsRequest(resources=[changes]))

    def check(reply: Reply, done: Done) -> None:
        result = reply.alter_configs.resources[0]
        facts = {"topic": name, "reply": result, "offset": done.offset}
        if result.HasField("error"):
            _left_no_trace(done, facts)
            return
        is_set = done.after.topic_config(name).get(key) == value
        invariant(is_set, "M10 a config is not set", key=key, value=value, **facts)

    return Wish(request, check)


# -- partitions and brokers


def _reassign(
    image: Image, name: str, brokers: list[int], dice: Random, given: list[int] | None = None
) -> Wish:
    topic = image.topic(name)
    partition = dice.randrange(len(topic.partitions) if topic else 1)
    asked = controller_pb2.Reassignment(
        partition=controller_pb2.TopicPartition(topic=name, partition=partition)
    )
    if dice.random() < 0.8:
        target = given or dice.sample(brokers, dice.randint(1, len(brokers)))
        asked.target.broker_ids.extend(target)
    request = Request(reassign=controller_pb2.ReassignRequest(partitions=[asked]))

    def check(reply: Reply, done: Done) -> None:
        result = reply.reassign.partitions[0]
        if result.HasField("error"):
            _left_no_trace(done, {"reply": result, "offset": done.offset})

    return Wish(request, check)


def _elect(
    _image: Image, name: str, _brokers: list[int], dice: Random, *, clean: bool = False
) -> Wish:
    asked = controller_pb2.ElectLeadersRequest(
        type=controller_pb2.ELECTION_TYPE_PREFERRED
        if clean or dice.random() < 0.5
        else controller_pb2.ELECTION_TYPE_UNCLEAN,
        partitions=[controller_pb2.TopicPartition(topic=name, partition=0)],
    )
    return Wish(Request(elect_leaders=asked), _no_check)


def _fence(broker_id: int, dice: Random) -> Wish:
    asked = controller_pb2.FenceBrokerRequest(broker_id=broker_id, fenced=dice.random() < 0.5)

    def check(_reply: Reply, done: Done) -> None:
        broker = done.after.brokers.get(broker_id)
        if broker is not None and asked.fenced:
            invariant(broker.is_fenced, "M10 a broker is not fenced", broker=broker)

    return Wish(Request(fence_broker=asked), check)


def _unregister(broker_id: int, _dice: Random) -> Wish:
    """Of a broker that may well be alive: it has to register again."""
    asked = controller_pb2.UnregisterBrokerRequest(broker_id=broker_id)

    def check(_reply: Reply, done: Done) -> None:
        gone = broker_id not in done.after.brokers
        invariant(gone, "M10 a broker is still registered", broker=broker_id)

    return Wish(Request(unregister_broker=asked), check)


def unfence(broker_id: int) -> Request:
    return Request(
        fence_broker=controller_pb2.FenceBrokerRequest(broker_id=broker_id, fenced=False)
    )


def _no_check(_reply: Reply, _done: Done) -> None:
    """Any answer is right."""


def _left_no_trace(done: Done, facts: dict[str, object]) -> None:
    invariant(done.records == 1, "M4 refused, and yet something was done", **facts)
