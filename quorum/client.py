"""Asking controllers from outside: who leads, what each believes, who is a voter, and proposals.

The unary calls: for tools that ask now and then. Whoever proposes a lot uses `quorum.proposer`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from kraftlog.connection import open_channel
from kraftlog.errors import (
    KraftError,
    LeaderNotAvailable,
    NetworkError,
    WireError,
    from_wire,
)
from kraftlog.resolver import Resolve
from kraftlog.rpc import raft_pb2
from kraftlog.types import Uuid
from quorum.batches import encode_key, encode_voter
from quorum.core.messages import Refusal, ReplicaKey, Voter

TIMEOUT_MS = 2_000
RETRY_MS = 50
READ_BYTES = 1 << 20

_SERVICE = "kraftlog.rpc.Raft"

Description = raft_pb2.DescribeQuorumReply


R = TypeVar("R", bound=Message)

OnWait = Callable[[KraftError], Awaitable[None]]
"""Is told again and again why a change of the voters has to wait."""


class QuorumClient:
    """Knows some addresses of controllers; finds the leader by asking them."""

    def __init__(
        self, addresses: Sequence[str], *, resolve: Resolve = str, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self.addresses = tuple(addresses)
        self._resolve = resolve
        self._timeout_ms = timeout_ms
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    # -- what they say

    async def describe(self, address: str) -> Description:
        """What one controller believes. NetworkError if it does not answer."""
        request = raft_pb2.DescribeQuorumRequest()
        return await self._call(address, "DescribeQuorum", request, Description)

    async def describe_all(
        self, addresses: Sequence[str]
    ) -> list[tuple[str, Description | KraftError]]:
        """What each of them says, or why it says nothing."""

        async def ask(address: str) -> tuple[str, Description | KraftError]:
            try:
                return address, await self.describe(address)
            except KraftError as error:
                return address, error

        return list(await asyncio.gather(*map(ask, addresses)))

    async def find_leader(self) -> Description:
        """What the leader says of the quorum. Asks again until there is one, or time is up."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._timeout_ms / 1000
        while True:
            try:
                return await self._ask_leader()
            except KraftError:
                if loop.time() >= give_up_at:
                    raise
            await asyncio.sleep(RETRY_MS / 1000)

    async def _ask_leader(self) -> Description:
        answers = await self.describe_all(self.addresses)
        said = [answer for _, answer in answers if isinstance(answer, Description)]
        errors = [answer for _, answer in answers if isinstance(answer, KraftError)]
        if not said:
            raise errors[0]
        known = [each for each in said if each.header.HasField("leader")]
        if not known:
            epoch = max(each.header.epoch for each in said)
            raise LeaderNotAvailable(
                f"nobody leads epoch {epoch}", hint="`status` shows what each controller believes"
            )
        newest = max(known, key=lambda each: each.header.epoch)
        if newest.role == "leader":
            return newest
        leader = await self.describe(newest.header.leader.endpoint)
        if leader.role != "leader":
            raise LeaderNotAvailable(
                f"{newest.header.leader.endpoint} was said to lead and does not",
                hint="an election may be going on: try again",
            )
        return leader

    # -- what they are to do

    async def add_voter(self, leader: str, cluster_id: Uuid, voter: Voter) -> None:
        request = raft_pb2.AddVoterRequest(cluster_id=cluster_id.raw, voter=encode_voter(voter))
        reply = await self._call(leader, "AddVoter", request, raft_pb2.AddVoterReply)
        raise_refusal(reply.header, leader)

    async def add_voter_in_time(
        self, cluster_id: Uuid, voter: Voter, on_wait: OnWait | None = None
    ) -> None:
        """The same, through whoever leads, and again while the reason against it is a passing one:
        an observer that has just begun needs a moment to catch up.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._timeout_ms / 1000
        while True:
            leader = await self.find_leader()
            try:
                return await self.add_voter(leader.header.leader.endpoint, cluster_id, voter)
            except KraftError as error:
                if refusal_of(error) not in PASSING or loop.time() >= give_up_at:
                    raise
                reason = error
            if on_wait is not None:
                await on_wait(reason)
            await asyncio.sleep(RETRY_MS / 1000)

    async def remove_voter(self, leader: str, cluster_id: Uuid, key: ReplicaKey) -> None:
        request = raft_pb2.RemoveVoterRequest(cluster_id=cluster_id.raw, key=encode_key(key))
        reply = await self._call(leader, "RemoveVoter", request, raft_pb2.RemoveVoterReply)
        raise_refusal(reply.header, leader)

    async def step_down(self, leader: str, cluster_id: Uuid, heir: ReplicaKey | None) -> None:
        """Have the leader resign, with somebody first in line or with whoever has most."""
        key = encode_key(heir) if heir else None
        request = raft_pb2.StepDownRequest(cluster_id=cluster_id.raw, successor=key)
        reply = await self._call(leader, "StepDown", request, raft_pb2.StepDownReply)
        raise_refusal(reply.header, leader)

    async def read_log(self, address: str, offset: int) -> raft_pb2.ReadLogReply:
        """Committed batches of a controller's log, from an offset on."""
        request = raft_pb2.ReadLogRequest(offset=offset, max_bytes=READ_BYTES)
        reply = await self._call(address, "ReadLog", request, raft_pb2.ReadLogReply)
        raise_refusal(reply.header, address)
        return reply

    async def read_snapshot(self, address: str, snapshot: raft_pb2.SnapshotId) -> bytes:
        """All of the file."""
        data = bytearray()
        while True:
            request = raft_pb2.ReadLogRequest(
                snapshot=snapshot, position=len(data), max_bytes=READ_BYTES
            )
            reply = await self._call(address, "ReadLog", request, raft_pb2.ReadLogReply)
            raise_refusal(reply.header, address)
            data += reply.data
            if len(data) >= reply.size or not reply.data:
                return bytes(data)

    async def propose(self, leader: str, cluster_id: Uuid, values: Sequence[bytes]) -> int:
        """Returns the offset of the first record, once it is committed."""
        request = raft_pb2.ProposeRequest(cluster_id=cluster_id.raw, records=values)
        reply = await self._call(leader, "Propose", request, raft_pb2.ProposeReply)
        raise_refusal(reply.header, leader)
        return reply.base_offset

    async def _call(self, address: str, method: str, request: Message, reply: type[R]) -> R:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = open_channel(address, self._resolve)
        call: grpc.aio.UnaryUnaryMultiCallable[Message, R] = channel.unary_unary(
            f"/{_SERVICE}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=reply.FromString,
        )
        try:
            return await call(request, timeout=self._timeout_ms / 1000)
        except grpc.aio.AioRpcError as error:
            raise NetworkError(
                f"{address} does not answer {method}: {_last_cause(error)}",
                hint="see whether the process runs and the address is right",
                node=address,
            ) from None


def _last_cause(error: grpc.aio.AioRpcError) -> str:
    """gRPC tells all that it has tried: "failed to connect to all addresses; last error: UNKNOWN:
    ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused".
    """
    return (error.details() or error.code().name).rpartition(": ")[2].rstrip("]")


PASSING = (
    Refusal.NOT_CAUGHT_UP,
    Refusal.CHANGE_PENDING,
    Refusal.EPOCH_NOT_COMMITTED,
    Refusal.NOT_LEADER,
    Refusal.LEADERSHIP_LOST,
)
"""Reasons not to change the voters that go away by themselves."""


def raise_refusal(header: raft_pb2.ReplyHeader, address: str) -> None:
    """Nothing happens if the request was granted."""
    if header.HasField("refusal"):
        error = header.error
        raise from_wire(WireError(error.code, error.message, error.hint), node=address)


def refusal_of(error: KraftError) -> Refusal | None:
    """The word of the quorum behind an error that a controller sent."""
    return next((each for each in Refusal if each.text == error.message), None)
