"""The service of the controller: what is checked before a call, and what a refusal says."""

import pytest

from kraftlog.errors import (
    InconsistentClusterId,
    InvalidRequest,
    NotController,
    UnsupportedVersion,
)
from kraftlog.rpc import common_pb2
from kraftlog.rpc import controller_pb2 as pb
from metadata_log.snapshot import digest
from quorum.controller_service import APIS
from tests.quorum.governed import CLUSTER, LEADER, Governed, error_of

Request = pb.ControllerRequest
DESCRIBE = pb.DescribeClusterRequest()


def test_every_request_of_the_protocol_is_served() -> None:
    fields = pb.ControllerRequest.DESCRIPTOR.oneofs_by_name["request"].fields
    assert {field.name for field in fields} == set(APIS.names)
    assert set(Governed()._calls()) == set(APIS.names) - {"api_versions"}


def test_a_reply_repeats_the_correlation_id() -> None:
    # R15
    world = Governed()
    world.start()
    header = common_pb2.RequestHeader(correlation_id=2**40, client_id="me")
    assert world.ask(Request(header=header, describe_cluster=DESCRIBE)).correlation_id == 2**40


def test_versions_are_told_and_checked() -> None:
    # R23
    world = Governed()
    reply = world.ask(Request(api_versions=common_pb2.ApiVersionsRequest()))
    assert {each.name for each in reply.api_versions.versions} == set(APIS.names)
    header = common_pb2.RequestHeader(api_version=7)
    reply = world.ask(Request(header=header, describe_cluster=DESCRIBE))
    assert isinstance(error_of(reply), UnsupportedVersion)


def test_a_request_that_is_none_is_refused() -> None:
    assert isinstance(error_of(Governed().ask(Request())), UnsupportedVersion)


def test_another_cluster_is_refused_before_anything_happens() -> None:
    # Q14
    world = Governed()
    world.start()
    before = digest(world.controller.committed)
    request = Request(cluster_id=b"another cluster!", describe_cluster=DESCRIBE)
    assert isinstance(error_of(world.ask(request)), InconsistentClusterId)
    request = Request(cluster_id=CLUSTER.raw, describe_cluster=DESCRIBE)
    assert error_of(world.ask(request)) is None
    assert digest(world.controller.committed) == before


def test_not_controller_says_who_is() -> None:
    # R3
    reply = Governed().ask(Request(describe_cluster=DESCRIBE))
    assert isinstance(error_of(reply), NotController)
    hint = reply.error.leader
    assert (hint.epoch, hint.leader.node_id) == (7, LEADER.key.node_id)
    assert (hint.leader.endpoint.host, hint.leader.endpoint.port) == ("127.0.0.1", 9102)


@pytest.mark.parametrize("client", [b"", b"x" * 15])
def test_a_request_id_has_a_client_of_sixteen_bytes(client: bytes) -> None:
    world = Governed()
    world.start()
    request = Request(create_topics=pb.CreateTopicsRequest(topics=[pb.NewTopic(name="a")]))
    request.request_id.client = client
    assert isinstance(error_of(world.ask(request)), InvalidRequest)
    assert world.controller.committed.topic("a") is None
