"""Clients of the first version go on working with the brokers of today (R23).

`first/` keeps the messages as they were in the first release. They are compiled here into classes
of their own, in a pool of their own, so that a test can speak as a client of then. Nothing in
`first/` is ever changed.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import grpc.aio
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kraftlog.connection import open_channel
from kraftlog.rpc import broker_pb2, common_pb2, controller_pb2
from tests.brokers.brokers import Cluster
from tests.brokers.images import uuid
from tests.brokers.served import served
from tests.brokers.test_service import records, values_of
from tests.loops import run

FIRST = Path(__file__).parent / "first"
PACKAGE = "kraftlog.rpc"
TODAY = (common_pb2.DESCRIPTOR, broker_pb2.DESCRIPTOR, controller_pb2.DESCRIPTOR)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> descriptor_pool.DescriptorPool:
    """All messages of the first version."""
    compiled = tmp_path_factory.mktemp("first") / "first.binpb"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={FIRST}"]
    command += [f"--descriptor_set_out={compiled}", "--include_imports"]
    command += [str(path) for path in sorted(FIRST.rglob("*.proto"))]
    subprocess.run(command, check=True)
    files = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool


def message(pool: descriptor_pool.DescriptorPool, name: str) -> type[Message]:
    found: type[Message] = message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
    )
    return found


# -- what is on the wire means what it meant


def messages_of(descriptors: "list[Descriptor]") -> Iterator[Descriptor]:
    for descriptor in descriptors:
        yield descriptor
        yield from messages_of(list(descriptor.nested_types))


def meaning(field: FieldDescriptor) -> tuple[object, ...]:
    inner = field.message_type or field.enum_type
    kind = None if inner is None else inner.full_name
    return field.name, field.type, field.is_repeated, field.has_presence, kind


def test_no_field_of_the_first_version_means_something_else_today(
    first: descriptor_pool.DescriptorPool,
) -> None:
    today = {
        each.full_name: each
        for file in TODAY
        for each in messages_of(list(file.message_types_by_name.values()))
    }
    for name in ("common", "broker", "controller"):
        then = first.FindFileByName(f"kraftlog/rpc/{name}.proto")
        for old in messages_of(list(then.message_types_by_name.values())):
            new = today[old.full_name]
            fields = {field.number: meaning(field) for field in new.fields}
            for field in old.fields:
                assert fields.get(field.number) == meaning(field), f"{old.full_name}.{field.name}"


def test_no_call_of_the_first_version_is_gone(first: descriptor_pool.DescriptorPool) -> None:
    for name, today in (("broker", TODAY[1]), ("controller", TODAY[2])):
        then = first.FindFileByName(f"kraftlog/rpc/{name}.proto")
        for service, old in then.services_by_name.items():
            new = today.services_by_name[service]
            assert set(old.methods_by_name) <= set(new.methods_by_name)


# -- a client of then


def test_a_client_of_the_first_version_produces_and_fetches(
    first: descriptor_pool.DescriptorPool, tmp_path: Path
) -> None:
    request_type, reply_type = message(first, "BrokerRequest"), message(first, "BrokerReply")

    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            async with (
                served(cluster.brokers[1].manager) as broker,
                open_channel(broker.address) as channel,
            ):
                call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                    "/kraftlog.rpc.Broker/Call"
                )

                async def ask(kind: str, **fields: object) -> broker_pb2.BrokerReply:
                    """An answer as the client of then reads it; it has the shape of today's."""
                    header = {"correlation_id": 3, "client_id": "of the first version"}
                    asked = request_type(**{"header": header, kind: fields})
                    encoded = await call(asked.SerializeToString(), timeout=20)
                    reply = reply_type.FromString(encoded)
                    assert reply.WhichOneof("reply") == kind, reply
                    return cast("broker_pb2.BrokerReply", reply)

                told = (await ask("api_versions")).api_versions.versions
                versions = {each.name: each for each in told}
                for name in ("metadata", "produce", "fetch", "list_offsets", "init_producer_id"):
                    assert versions[name].min_version == 0
                found = (await ask("metadata", topics=[{"name": "t"}])).metadata.topics[0]
                assert found.topic_id == uuid("t").raw
                batch = {"partition": 0, "records": records(b"a", b"b")}
                topic = {"topic_id": found.topic_id, "partitions": [batch]}
                done = await ask("produce", acks=-1, timeout_ms=5_000, topics=[topic])
                assert done.produce.topics[0].partitions[0].base_offset == 0
                part = {"partition": 0, "offset": 0, "max_bytes": 1 << 20}
                topic = {"topic_id": found.topic_id, "partitions": [part]}
                got = await ask(
                    "fetch", max_bytes=1 << 20, min_bytes=1, session_epoch=-1, topics=[topic]
                )
                assert values_of(got.fetch.topics[0].partitions[0].records) == [b"a", b"b"]
                latest = {"partition": 0, "timestamp": -1}
                topic = {"topic_id": found.topic_id, "partitions": [latest]}
                ends = await ask("list_offsets", topics=[topic])
                assert ends.list_offsets.topics[0].partitions[0].offset == 2
                assert (await ask("init_producer_id")).init_producer_id.producer_id >= 0

    run(story())
