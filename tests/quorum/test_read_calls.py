"""Reads of the committed image."""

from kraftlog.errors import NotController, UnknownTopicOrPartition
from kraftlog.rpc import controller_pb2 as pb
from tests.quorum.governed import CLUSTER, Governed, error_of

Request = pb.ControllerRequest


def started() -> Governed:
    world = Governed()
    world.start(1, 2)
    world.create("a", (1, 2), (2, 1))
    return world


def test_the_cluster_is_described_with_its_brokers() -> None:
    world = started()
    world.pass_time(1_400)
    world.beat(2)
    world.pass_time(200)
    cluster = world.ask(Request(describe_cluster=pb.DescribeClusterRequest())).describe_cluster
    assert cluster.cluster_id == CLUSTER.raw
    assert (cluster.controller_id, cluster.epoch) == (1, 1)
    assert (cluster.topics, cluster.partitions) == (1, 2)
    dead, alive = cluster.brokers
    assert (dead.broker_id, dead.fenced, dead.fence_cause) == (1, True, "session timeout")
    assert (alive.broker_id, alive.fenced, alive.fence_cause) == (2, False, "")
    assert (alive.leaders, alive.replicas) == (2, 2)
    assert alive.heartbeat_ago_ms == 200
    assert alive.endpoint.port == 9002


def test_a_read_waits_for_its_turn_and_sees_what_was_committed_before() -> None:
    # M2
    world = started()
    replies = world.send(Request(describe_topics=pb.DescribeTopicsRequest()))
    assert replies == []
    world.ledger.settle()
    (topic,) = replies[0].describe_topics.topics
    assert topic.name == "a"
    assert [list(each.replicas) for each in topic.partitions] == [[1, 2], [2, 1]]
    assert replies[0].offset == world.controller.committed.end_offset


def test_a_topic_that_is_not_there_has_an_error_of_its_own() -> None:
    world = started()
    wanted = pb.DescribeTopicsRequest(topics=[pb.TopicRef(name="b"), pb.TopicRef(name="a")])
    missing, found = world.ask(Request(describe_topics=wanted)).describe_topics.topics
    assert isinstance(error_of(missing), UnknownTopicOrPartition)
    assert error_of(found) is None


def test_configs_tell_where_they_come_from() -> None:
    world = started()
    topic = pb.ConfigResource(type=pb.RESOURCE_TYPE_TOPIC, name="a")
    change = pb.ConfigChange(name="retention.ms", value="5000")
    changes = pb.ResourceChanges(resource=topic, changes=[change])
    world.ask(Request(alter_configs=pb.AlterConfigsRequest(resources=[changes])))
    nowhere = pb.ConfigResource(type=pb.RESOURCE_TYPE_TOPIC, name="b")
    brokers = pb.ConfigResource(type=pb.RESOURCE_TYPE_BROKER)
    wanted = pb.DescribeConfigsRequest(resources=[topic, nowhere, brokers])
    reply = world.ask(Request(describe_configs=wanted)).describe_configs
    found, missing, of_all = reply.resources
    entries = {each.name: (each.value, each.source) for each in found.entries}
    assert entries["retention.ms"] == ("5000", "topic")
    assert entries["min.insync.replicas"] == ("1", "cluster")
    assert entries["segment.bytes"] == (str(1 << 30), "default")
    assert isinstance(error_of(missing), UnknownTopicOrPartition)
    assert [each.source for each in of_all.entries] == ["cluster"]


def test_only_the_active_controller_answers() -> None:
    world = Governed()
    reply = world.ask(Request(describe_cluster=pb.DescribeClusterRequest()))
    assert isinstance(error_of(reply), NotController)


def test_leadership_may_go_while_a_read_waits() -> None:
    world = started()
    replies = world.send(Request(describe_cluster=pb.DescribeClusterRequest()))
    world.ledger.lose()
    world.ledger.settle()
    assert isinstance(error_of(replies[0]), NotController)
