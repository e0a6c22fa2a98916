"""A voter that has lost its disk makes room for the one that takes its place."""

import asyncio
import os

from kraftctl.exit_codes import Guarded, NotFound
from kraftlog.clock import SystemClock
from kraftlog.errors import KraftError
from kraftlog.resolver import resolver
from kraftlog.types import Uuid
from quorum.batches import decode_key
from quorum.client import QuorumClient
from quorum.core.messages import ReplicaKey
from quorum.directory import NotFormatted, open_directory
from storage.files import OsFiles


def make_room(seed: str, node_id: int, directory: str) -> str:
    """Remove the voter with this node id, unless it is the one in this directory or still alive.

    What was done, in words.
    """
    return asyncio.run(_make_room(seed, node_id, directory))


async def _make_room(seed: str, node_id: int, directory: str) -> str:
    async with QuorumClient((seed,), resolve=resolver(os.environ)) as client:
        leader = await client.find_leader()
        voters = {each.key.node_id: each for each in leader.voters}
        if node_id not in voters:
            known = ", ".join(map(str, sorted(voters)))
            raise NotFound(f"{node_id} is no voter", hint=f"the voters are {known}")
        lost, address = decode_key(voters[node_id].key), voters[node_id].endpoint
        if _key_in(directory) == lost:
            return f"{directory} is voter {lost} itself: nothing is replaced"
        if await _answers(client, address, lost):
            raise Guarded(
                f"voter {lost} is alive at {address}", hint="stop it first, if it shall be replaced"
            )
        endpoint = leader.header.leader.endpoint
        await client.remove_voter(endpoint, Uuid(leader.cluster_id), lost)
        return f"voter {lost} is removed; {directory} takes its place"


def _key_in(directory: str) -> ReplicaKey | None:
    try:
        with open_directory(OsFiles(), directory, SystemClock()) as identity:
            return identity.key
    except NotFormatted:
        return None


async def _answers(client: QuorumClient, address: str, key: ReplicaKey) -> bool:
    try:
        return decode_key((await client.describe(address)).node) == key
    except KraftError:
        return False
