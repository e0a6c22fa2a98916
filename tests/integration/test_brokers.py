"""Three controllers and three brokers, each a real process, and what is promised of them.

The cluster is shared and healed before each test: every node runs, and every replica is in sync.
"""

import os
import signal
import time
from collections.abc import Iterator
from itertools import count

import pytest

from kraftlog.errors import ErrorCode
from kraftlog.local import LocalCluster
from kraftlog.local.process import NodeProcess
from kraftlog.rpc import broker_pb2, common_pb2, controller_pb2
from tests.integration.raw import RawClient, Refused
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SESSION_SECONDS = 1.5  # of the profile `fast`

_numbers = count(1)


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalCluster]:
    with LocalCluster(3, 3, config={"min.insync.replicas": 2}) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: LocalCluster) -> LocalCluster:
    for name in shared.nodes:
        if not shared.is_running(name):
            shared.start_node(name)
    shared.wait_healthy("60s", in_sync=True)
    return shared


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[RawClient]:
    with RawClient(cluster) as raw:
        yield raw


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_numbers)}"


# -- requests


def test_a_record_is_acknowledged_by_all_and_read_back(client: RawClient, topic: str) -> None:
    topic_id = client.create(topic, 3)
    for partition in range(3):
        leader = client.cluster.leader(topic, partition)
        values = [b"%d-%d" % (partition, number) for number in range(10)]
        assert client.produce(leader, topic_id, values, partition=partition) == 0
        assert client.fetch(leader, topic_id, partition) == values


def test_metadata_comes_from_any_broker(client: RawClient, topic: str) -> None:  # R17
    topic_id = client.create(topic, 2)

    def agree() -> bool:
        answers = [client.describe(name, topic) for name in client.cluster.brokers]
        assert {each.topic_id for each in answers} == {topic_id}
        return len({each.SerializeToString() for each in answers}) == 1

    wait_until(agree, "all brokers to say the same")
    request = broker_pb2.BrokerRequest(metadata=broker_pb2.MetadataRequest())
    told = client.broker("b2", request).metadata
    assert {each.endpoint.port for each in told.brokers} == {
        client.cluster.layout.find(name).port for name in client.cluster.brokers
    }
    assert {each.node_id for each in told.controllers} == {101, 102, 103}
    assert client.cluster.name_of(told.controller_id) == client.cluster.controller()


def test_who_does_not_lead_says_who_does(client: RawClient, topic: str) -> None:  # R8
    topic_id = client.create(topic)
    leader = client.cluster.leader(topic)
    other = next(name for name in client.cluster.brokers if name != leader)
    with pytest.raises(Refused) as caught:
        client.produce(other, topic_id, [b"x"])
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    told = caught.value.error.leader.leader
    assert told.node_id == client.cluster.node_id(leader)
    assert told.endpoint.port == client.cluster.layout.find(leader).port


def test_every_request_has_versions(client: RawClient) -> None:  # R15, R23
    asked = broker_pb2.BrokerRequest(api_versions=common_pb2.ApiVersionsRequest())
    asked.header.api_version = 99  # who asks cannot know yet
    versions = client.broker("b1", asked).api_versions.versions
    assert {"produce", "fetch", "metadata"} <= {each.name for each in versions}
    request = broker_pb2.BrokerRequest(metadata=broker_pb2.MetadataRequest())
    request.header.api_version = 9
    with pytest.raises(Refused, match=r"metadata has version 0 here, not 9") as caught:
        client.broker("b1", request)
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_a_request_for_another_cluster_is_refused(client: RawClient) -> None:
    request = broker_pb2.BrokerRequest(metadata=broker_pb2.MetadataRequest())
    request.cluster_id = bytes(16)
    with pytest.raises(Refused) as caught:
        client.broker("b1", request)
    assert caught.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_topic_that_is_asked_for_comes_to_be(client: RawClient, topic: str) -> None:  # R22
    message = broker_pb2.MetadataRequest(
        topics=[broker_pb2.TopicName(name=topic)], allow_auto_create=True
    )
    reply = client.broker("b1", broker_pb2.BrokerRequest(metadata=message))
    [found] = reply.metadata.topics
    assert not found.HasField("error")
    assert len(found.partitions) == 1
    assert len(found.partitions[0].replicas) == 3
    message = broker_pb2.MetadataRequest(
        topics=[broker_pb2.TopicName(name="not a name")], allow_auto_create=True
    )
    reply = client.broker("b1", broker_pb2.BrokerRequest(metadata=message))
    assert reply.metadata.topics[0].error.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert client.describe("b1", "unheard-of").error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_no_producer_id_is_handed_out_twice(client: RawClient) -> None:  # R34
    request = broker_pb2.BrokerRequest(init_producer_id=broker_pb2.InitProducerIdRequest())
    ids = [
        client.broker(name, request).init_producer_id.producer_id
        for _ in range(5)
        for name in client.cluster.brokers
    ]
    assert len(set(ids)) == 15
    transactional = broker_pb2.InitProducerIdRequest(transactional_id="t")
    with pytest.raises(Refused, match="transactions are not there yet"):
        client.broker("b1", broker_pb2.BrokerRequest(init_producer_id=transactional))


# -- brokers that come and go


def another_broker(cluster: LocalCluster, directory: str) -> list[str]:
    """The arguments of a broker that the cluster does not look after."""
    peers = ",".join(cluster.address(name) for name in cluster.controllers)
    own = ["run", "--log-dirs", directory, "--listen", "127.0.0.1:0", "--profile", "fast"]
    return [*own, "--peers", peers, "--cluster-id", cluster.cluster_id]


def test_a_killed_leader_is_replaced_and_nothing_is_lost(
    client: RawClient, topic: str
) -> None:  # R2, R4
    topic_id = client.create(topic)
    values = [b"%d" % number for number in range(50)]
    leader = client.cluster.leader(topic)
    for value in values[:25]:
        client.produce(leader, topic_id, [value])
    client.cluster.kill(leader)
    for value in values[25:]:
        client.insist(topic, [value])
    successor = client.leads_and_holds(topic, values)
    assert successor != leader
    client.cluster.start_node(leader)
    client.cluster.wait_healthy("60s", in_sync=True)
    assert (
        client.describe(successor, topic).partitions[0].replicas
        == client.describe(leader, topic).partitions[0].replicas
    )


def test_a_stop_moves_leaders_first(client: RawClient, topic: str) -> None:  # R7
    topic_id = client.create(topic, 3)
    stopped = client.cluster.leader(topic, 0)
    client.produce(stopped, topic_id, [b"before"])
    assert client.cluster.stop_node(stopped) == 0
    # It has ended only after others had taken over: no session had to run out for that.
    log = client.cluster.logs(stopped)
    assert "STOPPING -> STOPPED" in log
    assert "stopping all the same" not in log
    wait_until(lambda: client.cluster.leader(topic, 0) != stopped, "others to hear of it")
    assert client.leads_and_holds(topic, [b"before"]) != stopped
    marker = os.path.join(client.cluster.data_path(stopped), ".kafka_cleanshutdown")
    assert os.path.exists(marker)


def test_a_restarted_broker_goes_on_from_its_own_copy_of_the_metadata(
    client: RawClient, topic: str
) -> None:  # R6
    client.create(topic)
    client.cluster.stop_node("b3")
    seen = len(client.cluster.logs("b3"))
    client.cluster.start_node("b3")
    client.cluster.wait_healthy("60s", in_sync=True)
    said = client.cluster.logs("b3")[seen:]
    ends = [line for line in said.splitlines() if "the metadata log here ends at" in line]
    assert int(ends[0].rpartition(" ")[2]) > 10
    assert client.describe("b3", topic).partitions[0].leader_id > 0


def test_a_second_broker_with_the_same_id_is_refused(
    client: RawClient, tmp_path_factory: pytest.TempPathFactory
) -> None:  # R1
    cluster = client.cluster
    directory = tmp_path_factory.mktemp("twin")
    arguments = another_broker(cluster, str(directory / "data"))
    twin = NodeProcess(
        "twin",
        "brokers",
        [*arguments, "--node-id", "1", "-X", "initial.broker.registration.timeout.ms=1s"],
        str(directory / "twin.log"),
    )
    twin.start()
    try:
        assert twin.wait(60) == 6
    finally:
        twin.close()
    assert "not registered yet" in twin.log()
    assert "error: " in twin.log()
    cluster.wait_healthy("30s")


def test_a_broker_without_an_id_is_given_one_and_keeps_it(
    tmp_path_factory: pytest.TempPathFactory, client: RawClient
) -> None:  # R1
    cluster = client.cluster
    directory = tmp_path_factory.mktemp("nameless")
    arguments = another_broker(cluster, str(directory / "data"))
    nameless = NodeProcess(
        "nameless",
        "brokers",
        arguments,
        str(directory / "nameless.log"),
    )
    meta = directory / "data" / "meta.properties"
    try:
        nameless.start()
        wait_until(lambda: "RECOVERY -> RUNNING" in nameless.log(), "a fourth broker")
        [given] = [line for line in meta.read_text().splitlines() if line.startswith("node.id=")]
        assert int(given.partition("=")[2]) not in {1, 2, 3, 101, 102, 103}
        nameless.signal(signal.SIGTERM)
        assert nameless.wait() == 0
        nameless.start()
        wait_until(
            lambda: nameless.log().count("RECOVERY -> RUNNING") == 2, "the same broker again"
        )
        assert given in meta.read_text()
    finally:
        nameless.close()
    broker_id = int(given.partition("=")[2])
    request = controller_pb2.UnregisterBrokerRequest(broker_id=broker_id)
    client.controller(controller_pb2.ControllerRequest(unregister_broker=request))


def test_a_broker_that_slept_acknowledges_nothing(client: RawClient, topic: str) -> None:  # R6
    topic_id = client.create(topic)
    cluster = client.cluster
    sleeper = cluster.leader(topic)
    client.produce(sleeper, topic_id, [b"before"])
    cluster.pause(sleeper)
    wait_until(lambda: cluster.leader(topic) != sleeper, "another leader")
    client.insist(topic, [b"meanwhile"])
    cluster.resume(sleeper)
    for acks in (1, -1):
        with pytest.raises(Refused) as caught:
            client.produce(sleeper, topic_id, [b"lost"], acks=acks)
        assert caught.value.code in {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
        }
    cluster.wait_healthy("60s", in_sync=True)
    client.leads_and_holds(topic, [b"before", b"meanwhile"])


def test_without_controllers_data_goes_on(client: RawClient, topic: str) -> None:  # R14
    topic_id = client.create(topic)
    cluster = client.cluster
    leader = cluster.leader(topic)
    client.produce(leader, topic_id, [b"before"])
    for name in cluster.controllers:
        cluster.kill(name)
    # Beyond the end of its session only the other in-sync replicas tell it that it still leads.
    over = time.monotonic() + 2 * SESSION_SECONDS
    sent = 1
    while time.monotonic() < over:
        client.produce(leader, topic_id, [b"quick"], acks=1)
        client.produce(leader, topic_id, [b"safe"])
        sent += 2
        assert len(client.fetch(leader, topic_id)) == sent
    assert "heartbeats have no effect" in cluster.logs(leader)
    for name in cluster.controllers:
        cluster.start_node(name)
    cluster.wait_healthy("60s", in_sync=True)


def test_a_broker_that_was_unregistered_registers_again(client: RawClient) -> None:
    cluster = client.cluster
    request = controller_pb2.UnregisterBrokerRequest(broker_id=2)
    client.controller(controller_pb2.ControllerRequest(unregister_broker=request))
    wait_until(lambda: "must register again" in cluster.logs("b2"), "b2 to notice")
    cluster.wait_healthy("60s", in_sync=True)
