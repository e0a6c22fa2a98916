"""Becoming a voter: a newcomer catches up as an observer, then asks the leader to be added."""

import asyncio
import logging
from collections.abc import Callable

from kraftlog.errors import KraftError, NetworkError, NotLeaderError
from kraftlog.resolver import Resolve
from quorum.client import PASSING, QuorumClient, refusal_of
from quorum.core.messages import Refusal, Voter
from quorum.directory import AlreadyFormatted
from quorum.node import RaftNode
from quorum.server import ControllerServer

logger = logging.getLogger(__name__)

RETRY_MS = 100
TIMEOUT_MS = 5_000
TELL_MS = 1_000


class NodeIdTaken(AlreadyFormatted):
    """A voter with our node id exists, on another disk."""


async def become_voter(
    server: ControllerServer, resolve: Resolve, tell: Callable[[str], None] = logger.info
) -> None:
    """Returns once we are a voter. The request may be repeated: a second one finds us there.

    Where that takes long, `tell` hears once a second how far we are.
    """
    node, itself = server.node, Voter(server.identity.key, server.address.endpoint)
    tell_at_ms = node.now_ms() + TELL_MS
    async with QuorumClient((), resolve=resolve, timeout_ms=TIMEOUT_MS) as client:
        while not node.core.is_voter:
            await _try(client, node, itself, server)
            if node.now_ms() >= tell_at_ms:
                tell(await _how_far(client, node))
                tell_at_ms = node.now_ms() + TELL_MS
            await asyncio.sleep(RETRY_MS / 1000)
    logger.info("node %d is a voter", itself.key.node_id)


async def _how_far(client: QuorumClient, node: RaftNode) -> str:
    leader = node.core.leader
    if leader is None:
        return "looking for the leader"
    try:
        end = (await client.describe(leader.endpoint)).end_offset
    except KraftError:
        return f"the leader at {leader.endpoint} does not answer"
    own = node.core.log.end_offset
    state = "catching up" if own < end else "caught up, waits to be a voter"
    return f"{state}: the log ends at {own}, that of leader {leader.key.node_id} at {end}"


async def _try(
    client: QuorumClient, node: RaftNode, itself: Voter, server: ControllerServer
) -> None:
    try:
        await _ask(client, node, itself, server)
    except KraftError as error:
        if not _is_passing(error):
            raise
        logger.info("not a voter yet: %s", error.message)


async def _ask(
    client: QuorumClient, node: RaftNode, itself: Voter, server: ControllerServer
) -> None:
    leader = node.core.leader
    if leader is None:
        return  # not found yet
    taken = node.core.voters.find(itself.key.node_id)
    if taken is not None and taken.key != itself.key:
        raise NodeIdTaken(
            f"node {taken.key.node_id} is a voter already, with directory"
            f" {taken.key.directory_id}, and this one is {itself.key.directory_id}",
            hint=f"remove it first: kraftctl quorum remove {taken.key} -b {leader.endpoint}",
        )
    if not node.core.is_voter:
        await client.add_voter(leader.endpoint, server.identity.cluster_id, itself)


def _is_passing(error: KraftError) -> bool:
    if isinstance(error, NetworkError | NotLeaderError):
        return True
    refusal = refusal_of(error)
    # Another one's request was first: the next look at our own log tells which.
    return refusal in PASSING or refusal is Refusal.DUPLICATE_VOTER
