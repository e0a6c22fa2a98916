"""What an administrator's calls need: both kinds of servers, and options."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Self, cast

from kraftlog import client_keys as keys
from kraftlog._admin_wire import decode_quorum
from kraftlog._background import Background
from kraftlog._client_wire import error_of
from kraftlog._controller_client import ControllerClient
from kraftlog.admin_types import QuorumDescription
from kraftlog.client_config import (
    COMMON,
    CommonArguments,
    CommonOptions,
    common_options,
    read_options,
)
from kraftlog.clock import SystemClock
from kraftlog.cluster_client import ClusterClient
from kraftlog.errors import ErrorCode, KraftError, LeaderNotAvailable, NotController, RetriableError
from kraftlog.retry import Retry
from kraftlog.rpc import raft_pb2

PROBE_MS = 2_000


class AdminArguments(CommonArguments, total=False):
    """What an admin takes beside its addresses."""


class AdminOptions:
    """`controllers` are addresses to ask directly; then no broker is needed for what they know."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        bootstrap_controllers: str | Sequence[str] | None,
        arguments: Mapping[str, object],
    ) -> None:
        plain = dict(arguments)
        config = cast("Mapping[str, object] | None", plain.pop("config", None))
        options = read_options("admin", COMMON, plain, config)
        self.common: CommonOptions = common_options(bootstrap_servers, options, "admin")
        given = bootstrap_controllers or ()
        self.controllers: tuple[str, ...] = keys.BOOTSTRAP_SERVERS.parse(
            given if isinstance(given, str) else list(given),
            name="bootstrap_controllers",
            source="argument",
        )


class AdminCore:
    def __init__(self, options: AdminOptions, background: Background) -> None:
        self.options = options
        self._background = background
        self.cluster = ClusterClient(options.common, background)
        retry = Retry(options.common.backoff, SystemClock(), Random())  # noqa: S311
        self.controller = ControllerClient(
            None if options.controllers else self.cluster,
            background,
            addresses=options.controllers,
            options=options.common,
            retry=retry,
        )
        self._retry = retry
        self.failure: BaseException | None = None

    @classmethod
    async def open(cls, options: AdminOptions) -> Self:
        cores: list[Self] = []

        def on_failure(error: BaseException) -> None:
            for core in cores:
                core.failure = error

        background = await Background.open(options.common.client_id, on_failure)
        cores.append(cls(options, background))
        return cores[0]

    async def describe_quorum(self, address: str, timeout_ms: float) -> QuorumDescription:
        """What one controller believes of the quorum."""
        reply = await self.controller.call_raft(
            address,
            "DescribeQuorum",
            raft_pb2.DescribeQuorumRequest(),
            raft_pb2.DescribeQuorumReply,
            min(timeout_ms, PROBE_MS),
        )
        _raise_refusal(reply.header, address)
        return decode_quorum(reply)

    async def quorum_leader(self, timeout_ms: float) -> QuorumDescription:
        """What the leader says; asked for until there is one."""

        async def once(remaining_ms: float) -> QuorumDescription:
            failure: KraftError | None = None
            for address in await self.controller.controllers(remaining_ms):
                try:
                    return await self._leader_by(address, remaining_ms)
                except KraftError as error:
                    failure = error
            raise failure or LeaderNotAvailable("no controller is known")

        return await self._retry.run(once, timeout_ms=timeout_ms, harmless=True)

    async def _leader_by(self, address: str, timeout_ms: float) -> QuorumDescription:
        """What the leader says, found by asking one controller."""
        told = await self.describe_quorum(address, timeout_ms)
        if told.role != "leader" and told.leader is not None:
            told = await self.describe_quorum(told.leader.endpoint, timeout_ms)
        if told.role != "leader":
            raise LeaderNotAvailable(
                f"{address} knows of no leader in epoch {told.epoch}",
                hint="an election may be going on: try again",
                node=address,
            )
        return told

    async def change_voters(
        self,
        method: str,
        request: raft_pb2.AddVoterRequest | raft_pb2.RemoveVoterRequest,
        timeout_ms: float,
    ) -> None:
        """Ask the leader. A repeat after a lost answer could be refused as done already, so only
        what certainly did not happen is asked again.
        """

        async def once(remaining_ms: float) -> None:
            leader = await self.quorum_leader(remaining_ms)
            request.cluster_id = leader.cluster_id.raw if leader.cluster_id else b""
            endpoint = leader.leader.endpoint if leader.leader is not None else ""
            reply = await self.controller.call_raft(
                endpoint, method, request, raft_pb2.AddVoterReply, remaining_ms
            )
            _raise_refusal(reply.header, endpoint)

        await self._retry.run(once, timeout_ms=timeout_ms, harmless=False)

    async def close(self) -> None:
        await self.controller.close()
        await self._background.close()


def _raise_refusal(told: raft_pb2.ReplyHeader, node: str) -> None:
    """The error of a refused call; the quorum's own word where it has no number."""
    if told.HasField("error"):
        raise error_of(told.error, node)
    if not told.HasField("refusal"):
        return
    if told.refusal == "not leader":
        raise NotController(f"{node} does not lead the quorum", node=node)
    raise RetriableError(told.refusal, node=node, code=ErrorCode.OPERATION_NOT_ATTEMPTED)
