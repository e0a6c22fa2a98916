"""The standard gRPC reflection service: which services a server has and what their messages are, so
that grpcurl and its like need no .proto files.
"""

from collections.abc import AsyncIterator, Iterator, Sequence

import grpc
import grpc.aio
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor

from kraftlog.rpc.reflection_pb2 import (
    ReflectedFiles,
    ReflectedService,
    ReflectedServices,
    ReflectionError,
    ReflectionReply,
    ReflectionRequest,
)

SERVICES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""The same under two names: older tools know only the second."""


def reflection_handlers(served: Sequence[grpc.GenericRpcHandler]) -> list[grpc.GenericRpcHandler]:
    """What to add to a server beside its own handlers, and tells of these."""
    services = [each for each in served if isinstance(each, grpc.ServiceRpcHandler)]
    names = sorted(each.service_name() for each in services)

    async def tell(
        requests: AsyncIterator[ReflectionRequest],
        _: "grpc.aio.ServicerContext[ReflectionRequest, ReflectionReply]",
    ) -> AsyncIterator[ReflectionReply]:
        async for request in requests:
            yield answer(names, request)

    method = grpc.stream_stream_rpc_method_handler(
        tell,
        request_deserializer=ReflectionRequest.FromString,
        response_serializer=ReflectionReply.SerializeToString,
    )
    return [
        grpc.method_handlers_generic_handler(service, {"ServerReflectionInfo": method})
        for service in SERVICES
    ]


def answer(names: Sequence[str], request: ReflectionRequest) -> ReflectionReply:
    reply = ReflectionReply(valid_host=request.host, original_request=request)
    pool = descriptor_pool.Default()
    try:
        match request.WhichOneof("message_request"):
            case "list_services":
                services = [ReflectedService(name=name) for name in names]
                reply.list_services_response.CopyFrom(ReflectedServices(service=services))
            case "file_containing_symbol":
                found = pool.FindFileContainingSymbol(request.file_containing_symbol)
                reply.file_descriptor_response.CopyFrom(_files(found))
            case "file_by_filename":
                found = pool.FindFileByName(request.file_by_filename)
                reply.file_descriptor_response.CopyFrom(_files(found))
            case _:
                _refuse(reply, grpc.StatusCode.UNIMPLEMENTED, "extensions: proto3 has none")
    except KeyError as error:
        _refuse(reply, grpc.StatusCode.NOT_FOUND, str(error.args[0]))
    return reply


def _refuse(reply: ReflectionReply, code: grpc.StatusCode, why: str) -> None:
    number, _ = code.value
    reply.error_response.CopyFrom(ReflectionError(error_code=number, error_message=why))


def _files(wanted: FileDescriptor) -> ReflectedFiles:
    """A file and all that it imports, itself first."""
    found = {each.name: each.serialized_pb for each in _with_imports(wanted)}
    return ReflectedFiles(file_descriptor_proto=found.values())


def _with_imports(file: FileDescriptor) -> Iterator[FileDescriptor]:
    yield file
    for each in file.dependencies:
        yield from _with_imports(each)
