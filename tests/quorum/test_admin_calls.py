"""What administrators ask of the controller, as messages."""

import pytest

from kraftlog.errors import (
    BrokerNotRegistered,
    ConfigError,
    InvalidRequest,
    KraftError,
    TopicExists,
    UnknownTopicOrPartition,
)
from kraftlog.rpc import controller_pb2 as pb
from metadata_log.records import FenceCause
from metadata_log.snapshot import digest
from quorum.admin_calls import decode_topic_ref
from tests.quorum.governed import Governed, error_of, raise_error

Request = pb.ControllerRequest


def started() -> Governed:
    world = Governed()
    world.start(1, 2, 3)
    return world


def create(*topics: pb.NewTopic, validate_only: bool = False) -> Request:
    return Request(create_topics=pb.CreateTopicsRequest(topics=topics, validate_only=validate_only))


def test_topics_are_created_each_with_its_own_result() -> None:
    # R22
    world = started()
    world.create("there", (1,))
    reply = world.ask(
        create(
            pb.NewTopic(name="new", partitions=4, replication_factor=3),
            pb.NewTopic(name="there", partitions=1, replication_factor=1),
            pb.NewTopic(name="defaults"),
        )
    )
    made, there, defaults = reply.create_topics.topics
    assert (made.partitions, made.replication_factor, len(made.topic_id)) == (4, 3, 16)
    assert isinstance(error_of(there), TopicExists)
    assert (defaults.partitions, defaults.replication_factor) == (1, 1)
    assert reply.offset == world.controller.committed.end_offset


def test_validating_changes_nothing() -> None:
    world = started()
    before = digest(world.controller.committed)
    request = create(pb.NewTopic(name="new", partitions=4), validate_only=True)
    request.request_id.client = b"a client's number"[:16]
    reply = world.ask(request)
    raise_error(reply.create_topics.topics[0])
    assert digest(world.controller.committed) == before


def test_a_repeated_create_is_answered_with_its_first_result() -> None:
    # M3
    world = started()
    request = create(pb.NewTopic(name="new", partitions=4))
    request.request_id.client = b"a client's number"[:16]
    request.request_id.sequence = 3
    first = world.ask(request)
    world.ledger.lose()
    world.ledger.lead(9)
    again = world.ask(request)
    assert again == first
    raise_error(again.create_topics.topics[0])


def test_topics_are_deleted_by_name_or_id() -> None:
    world = started()
    world.create("a", (1,))
    world.create("b", (1,))
    by_id = world.controller.committed.topic("b")
    assert by_id is not None
    delete = pb.DeleteTopicsRequest(
        topics=[
            pb.TopicRef(name="a"),
            pb.TopicRef(topic_id=by_id.id.raw),
            pb.TopicRef(name="nowhere"),
        ]
    )
    results = world.ask(Request(delete_topics=delete)).delete_topics.topics
    assert [error_of(each) is None for each in results] == [True, True, False]
    assert isinstance(error_of(results[2]), UnknownTopicOrPartition)
    assert world.controller.committed.partition_count == 0


def test_partitions_are_added() -> None:
    world = started()
    world.create("a", (1, 2))
    more = pb.CreatePartitionsRequest(topics=[pb.NewPartitions(topic="a", count=5)])
    raise_error(world.ask(Request(create_partitions=more)).create_partitions.topics[0])
    assert world.controller.committed.partition_count == 5


def alter_config(name: str, value: str, *, operation: int = 0) -> Request:
    resource = pb.ConfigResource(type=pb.RESOURCE_TYPE_TOPIC, name="a")
    change = pb.ConfigChange(name=name, value=value)
    change.operation = operation  # type: ignore[assignment] # as a number from the wire
    changes = pb.ResourceChanges(resource=resource, changes=[change])
    return Request(alter_configs=pb.AlterConfigsRequest(resources=[changes]))


def test_configs_are_set_and_checked() -> None:
    world = started()
    world.create("a", (1,))
    raise_error(world.ask(alter_config("retention.ms", "1000")).alter_configs.resources[0])
    assert world.controller.committed.topic_config("a")["retention.ms"] == "1000"
    result = world.ask(alter_config("retention.ms", "soon")).alter_configs.resources[0]
    assert isinstance(error_of(result), ConfigError)
    assert world.controller.committed.topic_config("a")["retention.ms"] == "1000"


@pytest.mark.parametrize("operation", [-1, 4])
def test_a_config_operation_that_does_not_exist_is_refused(operation: int) -> None:
    world = started()
    world.create("a", (1,))
    reply = world.ask(alter_config("retention.ms", "1", operation=operation))
    assert isinstance(error_of(reply), InvalidRequest)


def test_allowing_unclean_elections_elects_at_once() -> None:
    # R11
    world = started()
    world.create("a", (1, 2))
    world.ask(_alter_isr(world, (1,)))
    world.applied.clear()
    world.ledger.now += 1_400
    world.beat(2)
    world.beat(3)
    world.pass_time(200)  # broker 1, the only one in sync, is fenced
    assert _leader(world) == -1
    world.ask(alter_config("unclean.leader.election.enable", "true"))
    assert _leader(world) == 2


def _alter_isr(world: Governed, isr: tuple[int, ...]) -> Request:
    topic = world.controller.committed.topic("a")
    assert topic is not None
    change = pb.IsrChange(topic_id=topic.id.raw, isr=[pb.IsrMember(broker_id=each) for each in isr])
    return Request(
        alter_partitions=pb.AlterPartitionsRequest(
            broker_id=1, broker_epoch=world.epochs[1], changes=[change]
        )
    )


def _leader(world: Governed) -> int:
    topic = world.controller.committed.topic("a")
    assert topic is not None
    return topic.partitions[0].leader


def test_leaders_are_elected_by_hand() -> None:
    # R42
    world = started()
    world.create("a", (1, 2))
    elect = pb.ElectLeadersRequest(
        partitions=[pb.TopicPartition(topic="a"), pb.TopicPartition(topic="nowhere")]
    )
    results = world.ask(Request(elect_leaders=elect)).elect_leaders.partitions
    assert len(results) == 2
    assert all(isinstance(error_of(each), KraftError) for each in results)


def test_a_reassignment_begins_is_listed_and_is_cancelled() -> None:
    # R43
    world = started()
    world.create("a", (1, 2))
    where = pb.TopicPartition(topic="a")
    move = pb.Reassignment(partition=where, target=pb.Replicas(broker_ids=[2, 3]))
    reply = world.ask(Request(reassign=pb.ReassignRequest(partitions=[move])))
    raise_error(reply.reassign.partitions[0])
    listed = world.ask(Request(list_reassignments=pb.ListReassignmentsRequest()))
    (ongoing,) = listed.list_reassignments.partitions
    assert (list(ongoing.adding), list(ongoing.removing)) == ([3], [1])
    cancel = pb.ReassignRequest(partitions=[pb.Reassignment(partition=where)])
    raise_error(world.ask(Request(reassign=cancel)).reassign.partitions[0])
    listed = world.ask(Request(list_reassignments=pb.ListReassignmentsRequest()))
    assert not listed.list_reassignments.partitions


def test_a_broker_is_unregistered() -> None:
    world = started()
    world.create("a", (1, 2))
    raise_error(world.ask(Request(unregister_broker=pb.UnregisterBrokerRequest(broker_id=1))))
    assert 1 not in world.controller.committed.brokers
    assert world.watch.sessions.find(1) is None
    assert _leader(world) == 2
    reply = world.ask(Request(unregister_broker=pb.UnregisterBrokerRequest(broker_id=77)))
    assert isinstance(error_of(reply), BrokerNotRegistered)


def test_an_operator_fences_and_only_an_operator_lets_back_in() -> None:
    world = started()
    fence = pb.FenceBrokerRequest(broker_id=1, fenced=True)
    raise_error(world.ask(Request(fence_broker=fence)))
    assert world.beat(1).heartbeat.is_fenced
    assert world.controller.committed.brokers[1].fence_cause is FenceCause.OPERATOR
    release = pb.FenceBrokerRequest(broker_id=1, fenced=False)
    raise_error(world.ask(Request(fence_broker=release)))
    assert not world.beat(1).heartbeat.is_fenced


def test_a_feature_level_out_of_range_is_refused() -> None:
    world = started()
    update = pb.FeatureUpdate(name="metadata.version", level=999)
    reply = world.ask(Request(update_features=pb.UpdateFeaturesRequest(updates=[update])))
    assert error_of(reply.update_features.features[0]) is not None


def test_a_topic_needs_an_id_or_a_name() -> None:
    with pytest.raises(InvalidRequest, match="neither id nor name"):
        decode_topic_ref(pb.TopicRef())
