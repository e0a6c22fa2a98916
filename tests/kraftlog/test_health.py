import grpc
import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from kraftlog.connection import open_channel
from kraftlog.health import SERVICE, Health, ServingStatus
from kraftlog.serving import open_server
from tests.loops import run


def test_the_status_is_told_and_its_changes_are() -> None:
    async def story() -> None:
        health = Health()
        server, port = open_server("127.0.0.1:0")
        server.add_generic_rpc_handlers((health.handlers(),))
        await server.start()
        async with open_channel(f"127.0.0.1:{port}") as channel:
            check: grpc.aio.UnaryUnaryMultiCallable[StringValue, Int32Value] = channel.unary_unary(
                f"/{SERVICE}/Check",
                request_serializer=StringValue.SerializeToString,
                response_deserializer=Int32Value.FromString,
            )
            assert (await check(StringValue())).value == ServingStatus.NOT_SERVING
            health.set("", serving=True)
            assert (await check(StringValue())).value == ServingStatus.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await check(StringValue(value="nobody"))
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND
            await watch_changes(channel, health)
        await server.stop(None)

    run(story())


async def watch_changes(channel: grpc.aio.Channel, health: Health) -> None:
    watch: grpc.aio.UnaryStreamMultiCallable[StringValue, Int32Value] = channel.unary_stream(
        f"/{SERVICE}/Watch",
        request_serializer=StringValue.SerializeToString,
        response_deserializer=Int32Value.FromString,
    )
    call = watch(StringValue(value="raft"))
    told = []
    for serving in (None, True, False):
        if serving is not None:
            health.set("raft", serving=serving)
        message = await call.read()
        assert isinstance(message, Int32Value)
        told.append(ServingStatus(message.value))
    assert told == [
        ServingStatus.SERVICE_UNKNOWN,
        ServingStatus.SERVING,
        ServingStatus.NOT_SERVING,
    ]
    call.cancel()


def test_the_bytes_are_those_of_the_standard_messages() -> None:
    # HealthCheckRequest{service: "raft"} and HealthCheckResponse{status: SERVING}
    assert StringValue(value="raft").SerializeToString() == b"\x0a\x04raft"
    assert Int32Value(value=ServingStatus.SERVING).SerializeToString() == b"\x08\x01"
