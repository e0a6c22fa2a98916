"""Asking controllers directly, all at once: who there is, what each believes, what its log says.

A command finds them by what it was given. Addresses behind `-b` may be brokers' or controllers'; a
local cluster has written its controllers down. So these commands work while no broker does.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, TypeVar

from kraftctl.session import Session
from kraftlog.admin_types import QuorumDescription
from kraftlog.cluster_health import Belief as Belief  # noqa: PLC0414 - part of this module
from kraftlog.cluster_health import leader_of as leader_of  # noqa: PLC0414 - as above
from kraftlog.durations import to_seconds
from kraftlog.errors import KraftError, LeaderNotAvailable

if TYPE_CHECKING:
    from quorum.client import QuorumClient

ANSWER_MS = 2_000

T = TypeVar("T")


def beliefs(session: Session) -> dict[str, Belief]:
    """What each controller believes, or why it does not say."""
    found = with_controllers(session, _describe_known)
    if any(isinstance(each, QuorumDescription) for each in found.values()):
        return found
    if session.local_controllers:
        return found
    with session.admin() as admin:  # the addresses are those of brokers
        known = admin.controllers()
    return with_controllers(session, _describe_known, known)


def find_leader(session: Session) -> QuorumDescription:
    """What the leader says; LeaderNotAvailable if nobody leads."""
    leader = leader_of(beliefs(session).values())
    if leader is None:
        raise LeaderNotAvailable("nobody leads", hint="kraftctl quorum why tells more")
    return leader


def with_controllers(
    session: Session,
    act: "Callable[[QuorumClient], Coroutine[None, None, T]]",
    addresses: Iterable[str] | None = None,
    *,
    patient: bool = False,
) -> T:
    """Do something with a client of some controllers, or of those that the command means. A patient
    one waits for each answer as long as the command may.
    """
    from kraftlog.resolver import resolver  # noqa: PLC0415 - gRPC takes its time to load
    from quorum.client import QuorumClient  # noqa: PLC0415

    given = tuple(addresses or session.local_controllers or session.bootstrap.split(","))
    timeout_ms = int(to_seconds(session.timeout, "--timeout") * 1000)
    timeout_ms = timeout_ms if patient else min(ANSWER_MS, timeout_ms)

    async def run() -> T:
        resolve = resolver(os.environ)
        async with QuorumClient(given, resolve=resolve, timeout_ms=timeout_ms) as client:
            return await act(client)

    return asyncio.run(run())


async def _describe_known(client: "QuorumClient") -> dict[str, Belief]:
    """Those that were named, then every voter that they know."""
    found = await _describe(client, client.addresses)
    said = [each for each in found.values() if isinstance(each, QuorumDescription)]
    if not said:
        return found
    newest = max(said, key=lambda each: (each.epoch, each.role == "leader"))
    endpoints = [replica.voter.endpoint for replica in newest.voters]
    others = await _describe(client, [each for each in endpoints if each not in found])
    return dict(sorted((found | others).items(), key=_by_node))


async def _describe(client: "QuorumClient", addresses: Iterable[str]) -> dict[str, Belief]:
    from kraftlog._admin_wire import decode_quorum  # noqa: PLC0415

    answers = await client.describe_all(list(addresses))
    return {
        address: answer if isinstance(answer, KraftError) else decode_quorum(answer)
        for address, answer in answers
    }


def _by_node(found: tuple[str, Belief]) -> tuple[int, str]:
    address, belief = found
    known = isinstance(belief, QuorumDescription)
    return (belief.node.node_id if known else 1 << 31), address  # type: ignore[union-attr] # known
