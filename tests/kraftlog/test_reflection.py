import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kraftlog.connection import open_channel
from kraftlog.health import Health
from kraftlog.local import LocalCluster
from kraftlog.reflection import SERVICES, answer, reflection_handlers
from kraftlog.rpc.reflection_pb2 import ReflectionReply, ReflectionRequest
from kraftlog.serving import open_server
from tests.loops import run

Tell = grpc.aio.StreamStreamMultiCallable[ReflectionRequest, ReflectionReply]


async def ask(address: str, service: str, request: ReflectionRequest) -> ReflectionReply:
    async with open_channel(address) as channel:
        tell: Tell = channel.stream_stream(
            f"/{service}/ServerReflectionInfo",
            request_serializer=ReflectionRequest.SerializeToString,
            response_deserializer=ReflectionReply.FromString,
        )
        call = tell(iter([request]))
        reply = await call.read()
        assert isinstance(reply, ReflectionReply)
        return reply


def names(reply: ReflectionReply) -> list[str]:
    return [each.name for each in reply.list_services_response.service]


@pytest.mark.parametrize("service", SERVICES)
def test_services_are_listed_under_both_names_of_it(service: str) -> None:
    async def story() -> None:
        server, port = open_server("127.0.0.1:0")
        handlers = [Health().handlers()]
        server.add_generic_rpc_handlers((*handlers, *reflection_handlers(handlers)))
        await server.start()
        reply = await ask(f"127.0.0.1:{port}", service, ReflectionRequest(list_services="*"))
        assert names(reply) == ["grpc.health.v1.Health"]
        await server.stop(None)

    run(story())


def test_a_file_comes_with_what_it_imports() -> None:
    from kraftlog.rpc import broker_pb2  # noqa: PLC0415 - only a file that is loaded is known

    assert broker_pb2.DESCRIPTOR.name == "kraftlog/rpc/broker.proto"
    by_symbol = answer([], ReflectionRequest(file_containing_symbol="kraftlog.rpc.Broker"))
    files = by_symbol.file_descriptor_response.file_descriptor_proto
    found = [FileDescriptorProto.FromString(each).name for each in files]
    assert found[:2] == ["kraftlog/rpc/broker.proto", "kraftlog/rpc/common.proto"]
    by_name = answer([], ReflectionRequest(file_by_filename="kraftlog/rpc/broker.proto"))
    assert by_name.file_descriptor_response == by_symbol.file_descriptor_response


def test_what_is_not_there_is_said() -> None:
    unknown = answer([], ReflectionRequest(file_containing_symbol="no.Such"))
    assert unknown.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert answer([], ReflectionRequest(file_by_filename="no.proto")).HasField("error_response")
    nothing = answer([], ReflectionRequest(host="h"))
    assert nothing.error_response.error_code == grpc.StatusCode.UNIMPLEMENTED.value[0]


@pytest.mark.slow
def test_every_node_tells_its_services() -> None:
    async def story(cluster: LocalCluster) -> list[list[str]]:
        request = ReflectionRequest(list_services="*")
        nodes = [cluster.address(name) for name in cluster.nodes]
        return [names(await ask(node, SERVICES[0], request)) for node in nodes]

    with LocalCluster(1, 1) as cluster:
        controller, broker = run(story(cluster))
    assert {"kraftlog.rpc.Raft", "kraftlog.rpc.Controller", "grpc.health.v1.Health"} <= set(
        controller
    )
    assert {"kraftlog.rpc.Broker", "grpc.health.v1.Health"} <= set(broker)
