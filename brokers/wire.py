"""Between the requests of `brokers.requests` and the messages of broker.proto: what all share.

Protobuf goes no further than the modules named `wire` and `service`.
"""

from typing import Protocol

from brokers.cluster import NO_LEADER
from brokers.refusals import LeaderHint
from kraftlog.errors import KraftError, UnknownTopicOrPartition, WireError, from_wire, to_wire
from kraftlog.rpc import common_pb2


class Directory(Protocol):
    """Names and addresses, as the metadata has them."""

    def topic_id(self, name: str) -> bytes | None:
        """None: there is no topic of that name."""
        ...

    def endpoint(self, broker_id: int) -> str | None:
        """Where a broker is reached; None: it is not registered."""
        ...


class EmptyDirectory:
    """Of a broker that knows no metadata yet."""

    def topic_id(self, name: str) -> bytes | None:  # noqa: ARG002 - the protocol's signature
        return None

    def endpoint(self, broker_id: int) -> str | None:  # noqa: ARG002
        return None


EMPTY_DIRECTORY = EmptyDirectory()


def encode_endpoint(address: str) -> common_pb2.Endpoint:
    host, _, port = address.rpartition(":")
    return common_pb2.Endpoint(host=host.strip("[]"), port=int(port))


def decode_endpoint(endpoint: common_pb2.Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def encode_error(
    error: KraftError, leader: LeaderHint | None, directory: Directory
) -> common_pb2.Error:
    """An error as a field of a reply, with where to go instead if that is known."""
    wire = to_wire(error)
    message = common_pb2.Error(code=wire.code, message=wire.text, hint=wire.hint)
    if leader is not None:
        message.leader.epoch = leader.leader_epoch
        endpoint = directory.endpoint(leader.leader_id) if leader.leader_id != NO_LEADER else None
        if endpoint is not None:
            message.leader.leader.node_id = leader.leader_id
            message.leader.leader.endpoint.CopyFrom(encode_endpoint(endpoint))
    return message


def decode_error(error: common_pb2.Error, node: str) -> KraftError:
    return from_wire(WireError(error.code, error.message, error.hint), node=node)


def decode_hint(error: common_pb2.Error) -> LeaderHint | None:
    if not error.HasField("leader"):
        return None
    told = error.leader
    return LeaderHint(told.leader.node_id if told.HasField("leader") else NO_LEADER, told.epoch)


def unknown_topic(name: str) -> UnknownTopicOrPartition:
    return UnknownTopicOrPartition(
        f"no topic {name!r} in this broker's metadata",
        hint="create it, or look for a misspelt name",
    )
