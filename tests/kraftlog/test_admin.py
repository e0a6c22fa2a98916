from collections.abc import Iterator

import pytest

from kraftlog.admin import Admin
from kraftlog.admin_types import (
    Append,
    BrokerDescription,
    ConfigEntry,
    ConfigResource,
    ConfigValue,
    CreatedTopic,
    ListedOffset,
    NewTopic,
    OngoingReassignment,
    PartitionDescription,
    Subtract,
    Voter,
)
from kraftlog.cluster_health import GREEN, RED, YELLOW
from kraftlog.errors import (
    ConfigError,
    ErrorCode,
    InvalidRequest,
    KraftError,
    NotYetSupported,
    OffsetOutOfRange,
    TimeoutError_,
    TopicExists,
    UnknownTopicOrPartition,
)
from kraftlog.rpc import common_pb2, controller_pb2
from kraftlog.types import TopicPartition, Uuid
from tests.kraftlog.test_consumer import fill
from tests.kraftlog.toy_cluster import ToyCluster
from tests.kraftlog.toy_controller import CLUSTER_ID, DIRECTORY_ID, ToyQuorum
from tests.kraftlog.waiting import meanwhile, until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ID = Uuid(b"i" * 16)
TAKEN = common_pb2.Error(code=ErrorCode.TOPIC_ALREADY_EXISTS, message="it is there")

Reply = controller_pb2.ControllerReply
Request = controller_pb2.ControllerRequest


@pytest.fixture
def quorum() -> Iterator[ToyQuorum]:
    with ToyQuorum() as made:
        yield made


def admin_of(quorum: ToyQuorum) -> Admin:
    return Admin(
        bootstrap_controllers=quorum.addresses,
        api_timeout="20s",
        retry_backoff="5ms",
        retry_backoff_max="50ms",
    )


def create(request: Request) -> Reply:
    """One topic is made, one exists."""
    reply = Reply(offset=5)
    for topic in request.create_topics.topics:
        made = reply.create_topics.topics.add(name=topic.name)
        if topic.name == "taken":
            made.error.CopyFrom(TAKEN)
        else:
            made.topic_id, made.partitions = ID.raw, topic.partitions
            made.replication_factor = topic.replication_factor
    return reply


def test_topics_are_created_each_with_its_own_result(quorum: ToyQuorum) -> None:
    quorum.answers["create_topics"] = create
    with admin_of(quorum) as admin:
        wanted = NewTopic("a", 3, 2, configs={"cleanup.policy": "compact"})
        results = admin.create_topics([wanted, "taken"])
        assert results["a"] == CreatedTopic("a", ID, 3, 2)
        assert isinstance(results.errors["taken"], TopicExists)
        with pytest.raises(TopicExists, match="it is there"):
            results.raise_for_errors()
        by_hand = NewTopic("b", assignments=[[1, 2], [2, 1]])
        admin.create_topics(by_hand, validate_only=True).raise_for_errors()
    first, second = (request.create_topics for request in quorum.carried_out)
    assert dict(first.topics[0].configs) == {"cleanup.policy": "compact"}
    assert not first.topics[1].HasField("partitions")
    assert second.validate_only
    assert [list(r.broker_ids) for r in second.topics[0].assignments] == [[1, 2], [2, 1]]


# What changes something is carried out once, however often it has to be sent.
def test_a_lost_answer_does_not_create_twice(quorum: ToyQuorum) -> None:
    quorum.answers["create_topics"] = create
    quorum.replies_to_lose = 2
    with Admin(
        bootstrap_controllers=quorum.addresses, api_timeout="20s", request_timeout="100ms"
    ) as admin:
        assert admin.create_topics("a").ok
    assert len(quorum.carried_out) == 1
    assert len(quorum.asked) >= 3


@pytest.mark.parametrize("hints", [True, False])
def test_the_active_controller_is_found_from_any_other(quorum: ToyQuorum, hints: bool) -> None:
    quorum.answers["create_topics"] = create
    quorum.hints = hints
    with admin_of(quorum) as admin:
        for active in (103, 101, 102):
            quorum.active = active
            quorum.asked.clear()
            assert admin.create_topics("a").ok
            assert quorum.asked[-1] == (active, "create_topics")
            assert not hints or len(quorum.asked) <= 2


def test_a_controller_that_is_gone(quorum: ToyQuorum) -> None:
    quorum.answers["create_topics"] = create
    with admin_of(quorum) as admin:
        assert admin.create_topics("a").ok
        quorum.stop(101)
        quorum.active = 102
        assert admin.create_topics("b").ok


# ARCHITECTURE 1: any broker's metadata names the controllers, and the active one is asked directly
def test_the_controllers_are_found_by_any_broker(toys: ToyCluster, quorum: ToyQuorum) -> None:
    quorum.answers["create_topics"] = create
    quorum.active = 102
    toys.truth.controllers = {
        node_id: controller.port for node_id, controller in quorum.controllers.items()
    }
    toys.truth.controller_id = 102
    with Admin(toys.bootstrap, api_timeout="20s") as admin:
        assert admin.create_topics("a").ok
        assert quorum.asked == [(102, "create_topics")]
        assert sorted(admin.controllers()) == sorted(quorum.addresses.split(","))
        quorum.active = 103  # and the brokers do not know it yet
        assert admin.create_topics("b").ok


def test_deleting_and_growing_topics(quorum: ToyQuorum) -> None:
    def delete(request: Request) -> Reply:
        reply = Reply()
        for topic in request.delete_topics.topics:
            reply.delete_topics.topics.add(name=topic.name or str(Uuid(topic.topic_id)))
        return reply

    def grow(request: Request) -> Reply:
        reply = Reply()
        for topic in request.create_partitions.topics:
            result = reply.create_partitions.topics.add(name=topic.topic)
            if topic.count < 2:
                result.error.code = ErrorCode.INVALID_PARTITIONS
        return reply

    quorum.answers |= {"delete_topics": delete, "create_partitions": grow}
    with admin_of(quorum) as admin:
        assert admin.delete_topics(["a", ID]).ok == {"a": None, str(ID): None}
        results = admin.create_partitions({"a": 5, "b": 1})
        assert (list(results.ok), list(results.errors)) == (["a"], ["b"])


def test_describing_topics(quorum: ToyQuorum) -> None:
    def describe(request: Request) -> Reply:
        reply = Reply()
        topic = reply.describe_topics.topics.add(name="a", topic_id=ID.raw)
        topic.configs["retention.ms"] = "5"
        topic.partitions.add(
            partition=0, leader_id=2, leader_epoch=3, partition_epoch=4, replicas=[2, 1], isr=[2]
        )
        for ref in request.describe_topics.topics:
            if ref.name != "a":
                error = common_pb2.Error(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                reply.describe_topics.topics.add(name=ref.name, error=error)
        return reply

    quorum.answers["describe_topics"] = describe
    with admin_of(quorum) as admin:
        described = admin.describe_topics(["a", "b"])
        assert described["a"].partitions == (PartitionDescription(0, 2, 3, 4, (2, 1), (2,)),)
        assert described["a"].configs == {"retention.ms": "5"}
        with pytest.raises(UnknownTopicOrPartition):
            described["b"]
        assert admin.list_topics() == ["a"]
        assert len(admin.describe_topics([])) == 0
    assert not quorum.carried_out[0].HasField("request_id"), "reads need no id"


def test_configs(quorum: ToyQuorum) -> None:
    topic, brokers = ConfigResource.topic("t"), ConfigResource.broker()

    def alter(request: Request) -> Reply:
        reply = Reply()
        for each in request.alter_configs.resources:
            reply.alter_configs.resources.add(resource=each.resource)
        return reply

    def describe(request: Request) -> Reply:
        reply = Reply()
        for resource in request.describe_configs.resources:
            told = reply.describe_configs.resources.add(resource=resource)
            told.entries.add(name="retention.ms", value="5", source="topic")
        return reply

    quorum.answers |= {"alter_configs": alter, "describe_configs": describe}
    with admin_of(quorum) as admin:
        changes: dict[ConfigResource, dict[str, ConfigValue]] = {
            topic: {"a": "1", "b": None, "c": Append("x"), "d": Subtract("y")},
            brokers: {"e": "2"},
        }
        assert admin.alter_configs(changes).ok == {topic: None, brokers: None}
        entry = ConfigEntry("retention.ms", "5", "topic")
        assert admin.describe_configs(topic)[topic] == {"retention.ms": entry}
        with pytest.raises(NotYetSupported, match="quotas"):
            admin.alter_configs({brokers: {"producer_byte_rate": "1"}})
    sent = quorum.carried_out[0].alter_configs.resources[0]
    assert [(c.name, c.operation, c.value) for c in sent.changes] == [
        ("a", controller_pb2.CONFIG_OPERATION_SET, "1"),
        ("b", controller_pb2.CONFIG_OPERATION_DELETE, ""),
        ("c", controller_pb2.CONFIG_OPERATION_APPEND, "x"),
        ("d", controller_pb2.CONFIG_OPERATION_SUBTRACT, "y"),
    ]


def test_elections_moves_and_features(quorum: ToyQuorum) -> None:
    def elect(request: Request) -> Reply:
        reply = Reply()
        for place in request.elect_leaders.partitions:
            reply.elect_leaders.partitions.add(partition=place)
        return reply

    def move(request: Request) -> Reply:
        reply = Reply()
        for each in request.reassign.partitions:
            result = reply.reassign.partitions.add(partition=each.partition)
            if not each.HasField("target"):
                result.error.code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        return reply

    def moves(_: Request) -> Reply:
        reply = Reply()
        place = controller_pb2.TopicPartition(topic="t", partition=0)
        reply.list_reassignments.partitions.add(
            partition=place, replicas=[1, 2, 3], adding=[3], removing=[1]
        )
        return reply

    def update(request: Request) -> Reply:
        reply = Reply()
        for each in request.update_features.updates:
            reply.update_features.features.add(name=each.name)
        return reply

    quorum.answers |= {
        "elect_leaders": elect,
        "reassign": move,
        "list_reassignments": moves,
        "update_features": update,
    }
    with admin_of(quorum) as admin:
        assert admin.elect_leaders([T0], unclean=True).ok == {T0: None}
        results = admin.reassign({T0: [2, 3], T1: None})
        assert (list(results.ok), list(results.errors)) == ([T0], [T1])
        assert admin.list_reassignments() == {T0: OngoingReassignment((1, 2, 3), (3,), (1,))}
        assert admin.update_features({"x.version": 2}, allow_downgrade=True).ok
    assert quorum.carried_out[0].elect_leaders.type == controller_pb2.ELECTION_TYPE_UNCLEAN
    assert quorum.carried_out[-1].update_features.updates[0].allow_downgrade


def test_the_cluster_and_its_brokers(quorum: ToyQuorum) -> None:
    def describe(_: Request) -> Reply:
        reply = Reply(offset=42)
        told = reply.describe_cluster
        told.cluster_id, told.controller_id, told.epoch = CLUSTER_ID, 101, 7
        told.features["metadata.version"] = 3
        broker = told.brokers.add(broker_id=1, broker_epoch=9, incarnation_id=ID.raw, leaders=4)
        broker.endpoint.host, broker.endpoint.port = "b1", 19101
        return reply

    quorum.answers |= {
        "describe_cluster": describe,
        "unregister_broker": lambda _: Reply(
            unregister_broker=controller_pb2.UnregisterBrokerReply()
        ),
        "fence_broker": lambda _: Reply(fence_broker=controller_pb2.FenceBrokerReply()),
    }
    with admin_of(quorum) as admin:
        cluster = admin.describe_cluster()
        assert (cluster.cluster_id.raw, cluster.controller_id, cluster.offset) == (
            CLUSTER_ID,
            101,
            42,
        )
        assert cluster.features == {"metadata.version": 3}
        assert cluster.brokers == (
            BrokerDescription(1, 9, ID, "b1", 19101, None, False, False, "", None, 0, 4, 0),
        )
        admin.unregister_broker(3)
        admin.fence_broker(2)
        admin.fence_broker(2, fenced=False)
    fences = [request.fence_broker for request in quorum.carried_out[-2:]]
    assert [(fence.broker_id, fence.fenced) for fence in fences] == [(2, True), (2, False)]


def test_the_quorum_and_its_voters(quorum: ToyQuorum) -> None:
    quorum.active = 102
    voter = Voter(104, Uuid(DIRECTORY_ID), "127.0.0.1:9")
    with admin_of(quorum) as admin:
        told = admin.describe_quorum()
        assert (told.role, told.node.node_id, told.epoch, told.end_offset) == ("leader", 102, 7, 9)
        assert told.leader is not None
        assert told.voters[0].voter.node_id == 102
        other = quorum.controllers[103].address
        assert admin.describe_quorum(other).role == "follower"
        admin.add_voter(voter)
        admin.remove_voter(voter)
        assert len(quorum.voter_changes) == 2
        quorum.refuse_voters = ErrorCode.DUPLICATE_VOTER
        with pytest.raises(KraftError) as refused:
            admin.add_voter(voter)
        assert refused.value.code == ErrorCode.DUPLICATE_VOTER


def test_who_waits_while_another_thread_closes_hears_of_it(quorum: ToyQuorum) -> None:
    quorum.replies_to_lose = 1
    admin = Admin(bootstrap_controllers=quorum.addresses, api_timeout="10m")
    quorum.answers["fence_broker"] = lambda _: Reply()
    with meanwhile(lambda: admin.fence_broker(2)) as heard:
        until(lambda: bool(quorum.asked), "it waits")
        admin.close()
    assert isinstance(heard[0], InvalidRequest)
    assert "closed" in heard[0].message


def test_only_channels_to_known_controllers_are_kept(quorum: ToyQuorum) -> None:
    first, *others = quorum.addresses.split(",")
    with Admin(bootstrap_controllers=first, api_timeout="20s") as admin:
        for address in (first, *others):
            assert admin.describe_quorum(address).voters
        opened = admin._engine._admin
        assert opened is not None
        assert opened._core is not None
        assert set(opened._core.controller._channels) == {first}


# R20: list offsets: earliest, latest, by timestamp, max timestamp
def test_offsets_are_asked_of_the_leaders(toys: ToyCluster) -> None:
    fill(toys, T0, 20)
    fill(toys, T1, 5)
    with Admin(toys.bootstrap, api_timeout="5s", retry_backoff="5ms") as admin:
        listed = admin.list_offsets({T0: "end", T1: "start"})
        assert listed[T0] == ListedOffset(20, -1, 0)
        assert listed[T1].offset == 0
        assert admin.list_offsets({T0: "@1007"})[T0] == ListedOffset(7, 1007, 0)
        assert admin.list_offsets({T0: "@9999"})[T0].offset == -1
        assert admin.list_offsets({T0: "max_timestamp"})[T0] == ListedOffset(19, 1019, 0)
        assert admin.list_offsets({T0: "-3", T1: 2}).ok == {
            T0: ListedOffset(17),
            T1: ListedOffset(2),
        }
        nowhere = TopicPartition("nowhere", 0)
        mixed = admin.list_offsets({T0: "end", nowhere: "end"}, timeout="50ms")
        assert isinstance(mixed.errors[nowhere], UnknownTopicOrPartition)


def test_records_are_deleted_up_to_an_offset(toys: ToyCluster) -> None:
    fill(toys, T0, 20)
    fill(toys, T1, 20)
    with Admin(toys.bootstrap, api_timeout="5s", retry_backoff="5ms") as admin:
        toys.truth.lead("t", 0, 2)
        assert admin.delete_records({T0: 7, T1: "end"}).ok == {T0: 7, T1: 20}
        results = admin.delete_records({T0: 99, T1: 20})
        assert (list(results.ok), type(results.errors[T0])) == ([T1], OffsetOutOfRange)


def test_what_a_broker_has(toys: ToyCluster) -> None:
    with Admin(toys.bootstrap, api_timeout="5s") as admin:
        with pytest.raises(InvalidRequest, match="no broker 9 is up"):
            admin.describe_replicas(9)
        with pytest.raises(KraftError, match="describe_replicas"):
            admin.describe_replicas(1)  # the toys have none of it


class Cluster:
    """What the toy controllers say of one broker and the topic t; every change is a new offset."""

    def __init__(self, quorum: ToyQuorum) -> None:
        self.fenced = False
        self.leader = 1
        self.offset = 1
        self.flips = False
        """Whether it is another one at every look."""
        quorum.answers |= {"describe_cluster": self.cluster, "describe_topics": self.topics}

    def change(self, *, fenced: bool, leader: int) -> None:
        self.fenced, self.leader = fenced, leader
        self.offset += 1

    def cluster(self, _: Request) -> Reply:
        if self.flips:
            self.change(fenced=not self.fenced, leader=self.leader)
        reply = Reply(offset=self.offset)
        told = reply.describe_cluster
        told.cluster_id, told.controller_id, told.epoch = CLUSTER_ID, 101, 7
        told.brokers.add(broker_id=1, incarnation_id=ID.raw, fenced=self.fenced)
        return reply

    def topics(self, _: Request) -> Reply:
        reply = Reply(offset=self.offset)
        topic = reply.describe_topics.topics.add(name="t", topic_id=ID.raw)
        topic.partitions.add(partition=0, leader_id=self.leader, replicas=[1], isr=[1])
        return reply


def test_health_says_what_is_wrong(quorum: ToyQuorum) -> None:
    cluster = Cluster(quorum)
    with admin_of(quorum) as admin:
        assert admin.health().grade is GREEN
        assert admin.wait_until(GREEN, "5s", stable="1ms").problems == ()
        cluster.change(fenced=True, leader=1)
        assert str(admin.health()) == "YELLOW; broker 1 is fenced: not caught up yet"
        assert admin.wait_until("yellow", "5s").grade is YELLOW
        with pytest.raises(TimeoutError_, match=r"within 0\.3 s: YELLOW; broker 1"):
            admin.wait_until(GREEN, "300ms")
        cluster.change(fenced=False, leader=-1)
        assert str(admin.health()) == "RED; 1 partitions have no leader"
        quorum.stop(103)
        assert [each.grade for each in admin.health().problems] == [YELLOW, RED]
        with pytest.raises(ConfigError, match="green, yellow, red"):
            admin.wait_until("fine")
    with pytest.raises(InvalidRequest, match="closed"):
        admin.health()


def test_a_cluster_that_does_not_answer_is_red() -> None:
    for admin in (Admin("127.0.0.1:1"), Admin(bootstrap_controllers="127.0.0.1:1")):
        with admin:
            assert admin.health(timeout="200ms").grade is RED
            with pytest.raises(TimeoutError_, match="RED"):
                admin.wait_until(timeout="200ms")


def test_watching_tells_what_changes_from_then_on(quorum: ToyQuorum) -> None:
    cluster = Cluster(quorum)
    with admin_of(quorum) as admin:
        events = admin.watch(every="5ms")
        cluster.change(fenced=True, leader=-1)
        assert [next(events).kind for _ in range(2)] == ["broker_fenced", "leader"]
        cluster.change(fenced=False, leader=1)
        assert [str(next(events)) for _ in range(2)] == [
            "broker_unfenced 1",
            "leader t-0: none in epoch 0 -> 1 in epoch 0",
        ]


def test_what_comes_later_is_refused_by_name() -> None:
    admin = Admin("b:1")
    for call in (
        admin.list_groups,
        admin.describe_groups,
        admin.delete_groups,
        admin.list_transactions,
        admin.alter_client_quotas,
    ):
        with pytest.raises(NotYetSupported, match="needs"):
            call("anything", timeout=5)
    with pytest.raises(ConfigError, match="did you mean api_timeout"):
        Admin("b:1", api_timout=5)  # type: ignore[call-arg]


def test_a_closed_admin() -> None:
    admin = Admin("b:1")
    admin.close()
    with pytest.raises(InvalidRequest, match="closed"):
        admin.list_topics()


def test_nobody_answers() -> None:
    with Admin("127.0.0.1:1", api_timeout="100ms") as admin, pytest.raises(KraftError):
        admin.list_topics()
    with (
        Admin(bootstrap_controllers="127.0.0.1:1", api_timeout="100ms") as admin,
        pytest.raises(KraftError, match="cannot be reached"),
    ):
        admin.list_topics()
