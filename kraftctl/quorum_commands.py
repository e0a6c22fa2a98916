"""`kraftctl quorum ...`"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from kraftctl.controllers import Belief, beliefs, find_leader, leader_of, with_controllers
from kraftctl.diagnosis import key_of
from kraftctl.exit_codes import OK, UNHEALTHY, Conflict, NotFound
from kraftctl.node_names import node_number
from kraftctl.output import Json, table
from kraftctl.places import check_address
from kraftctl.progress import Progress
from kraftctl.session import Session, cluster_options, command
from kraftlog.admin_types import QuorumDescription
from kraftlog.durations import to_seconds
from kraftlog.errors import KraftError, NetworkError, RequestTimedOut, TimeoutError_

if TYPE_CHECKING:
    from kraftlog.types import Uuid
    from quorum.client import QuorumClient

POLL_SECONDS = 0.1

T = TypeVar("T")


def belief_row(
    address: str, belief: Belief, leader: QuorumDescription | None
) -> tuple[object, ...]:
    """One controller, and what the leader knows of it."""
    if isinstance(belief, KraftError):
        return (None, address, "unreachable", "", None, None, None, None, None, short(belief))
    believed = f"{belief.leader.node_id}" if belief.leader else "nobody"
    lag, contact_ms = _as_leader_sees(belief, leader)
    return (
        belief.node.node_id,
        address,
        belief.role,
        f"{believed} e{belief.epoch}",
        belief.end_offset,
        belief.high_watermark,
        lag,
        contact_ms,
        belief.voted.node_id if belief.voted else None,
        "",
    )


def _as_leader_sees(
    belief: QuorumDescription, leader: QuorumDescription | None
) -> tuple[int | None, int | None]:
    """How far behind one is, and when it has last fetched."""
    if leader is None or belief is leader:
        return None, None
    for each in (*leader.voters, *leader.observers):
        if key_of(each.voter) == key_of(belief.node) and each.end_offset >= 0:
            return max(0, leader.end_offset - each.end_offset), each.last_fetch_ago_ms
    return None, None


def belief_rows(found: Mapping[str, Belief]) -> list[Json]:
    """The same as JSON."""
    leader = leader_of(found.values())
    rows = [belief_row(address, belief, leader) for address, belief in found.items()]
    return [dict(zip(_KEYS, map(_plain, row), strict=True)) for row in rows]


_KEYS = (
    "node",
    "address",
    "role",
    "believes",
    "end",
    "high_watermark",
    "lag",
    "last_contact_ms",
    "voted",
    "problem",
)


def short(error: KraftError) -> str:
    """The last and most exact of its causes: where it happened is told already."""
    return error.message.rpartition(": ")[2]


BELIEFS = (
    "NODE",
    "ADDRESS",
    "ROLE",
    "BELIEVES",
    "END",
    "HW",
    "LAG",
    "CONTACT MS AGO",
    "VOTED",
    "",
)


@click.command()
@click.option("--wait", is_flag=True, help="Until there is a leader, and enough voters.")
@click.option("--voters", type=click.IntRange(1), default=1, help="With --wait: how many.")
@cluster_options
@command
def status(session: Session, *, wait: bool, voters: int) -> int:
    """Who leads, and what each controller believes. Exit code 3: nobody leads."""
    found = _wait_voters(session, voters) if wait else beliefs(session)
    leader = leader_of(found.values())
    rows = [belief_row(address, belief, leader) for address, belief in found.items()]
    head = (
        f"leader {leader.node.node_id}, epoch {leader.epoch}, {len(leader.voters)} voters"
        if leader
        else "NO LEADER"
    )
    data: Json = {
        "leader": leader.node.node_id if leader else None,
        "epoch": leader.epoch if leader else None,
        "voters": len(leader.voters) if leader else None,
        "controllers": belief_rows(found),
    }
    session.output.show(data, f"{head}\n{table(BELIEFS, rows)}")
    return OK if leader else UNHEALTHY


def _wait_voters(session: Session, wanted: int) -> Mapping[str, Belief]:
    """Until a leader has committed so many voters; TimeoutError_ says who is there."""
    deadline = time.monotonic() + to_seconds(session.timeout, "--timeout")
    need: tuple[int, int] | None = None
    progress = Progress(session.output)
    while True:
        found = _beliefs_so_far(session)
        leader = leader_of(found.values())
        if leader is None or len(leader.voters) < wanted:
            need = None
        elif need is None or need[0] != leader.epoch:
            need = leader.epoch, leader.end_offset  # the record of the voters is before that
        if leader is not None and need is not None and leader.high_watermark >= need[1]:
            return found
        text, hint = _missing(found, leader, wanted)
        if time.monotonic() > deadline:
            raise TimeoutError_(text, hint=hint)
        progress.tell(f"waiting: {text}")
        time.sleep(POLL_SECONDS)


def _beliefs_so_far(session: Session) -> Mapping[str, Belief]:
    """Nobody may listen yet."""
    try:
        return beliefs(session)
    except (NetworkError, TimeoutError_, RequestTimedOut) as error:
        return {session.bootstrap: error}


def _missing(
    found: Mapping[str, Belief], leader: QuorumDescription | None, wanted: int
) -> tuple[str, str]:
    silent = [address for address, each in found.items() if isinstance(each, KraftError)]
    unheard = f"; no answer from {', '.join(silent)}" if silent else ""
    if leader is None:
        return f"nobody leads so far{unheard}", "kraftctl quorum why tells more"
    there = ", ".join(str(each.voter.node_id) for each in leader.voters)
    text = f"{len(leader.voters)} of {wanted} voters so far: {there}{unheard}"
    known = {each.voter.node_id for each in leader.voters}
    waiting = [each.voter for each in leader.observers if each.voter.node_id not in known]
    names = ", ".join(str(each.node_id) for each in waiting)
    hint = f"observers, among them brokers: {names}; " if waiting else ""
    return text, f"{hint}one more: kraftctl quorum join, or kraftctl quorum add for one that runs"


def _plain(value: object) -> Json:
    return value if isinstance(value, int | str) or value is None else str(value)


@click.command()
@cluster_options
@command
def replication(session: Session) -> int:
    """How far each replica of the metadata log is, as the leader sees it."""
    leader = find_leader(session)
    rows = [
        (
            each.voter.node_id,
            str(each.voter.directory_id),
            kind,
            each.end_offset,
            max(0, leader.end_offset - each.end_offset),
            each.last_fetch_ago_ms,
            each.caught_up_ago_ms,
        )
        for kind, replicas in (("voter", leader.voters), ("observer", leader.observers))
        for each in replicas
    ]
    keys = ("node", "directory_id", "kind", "end", "lag", "last_fetch_ms", "caught_up_ms")
    headings = ("NODE", "DIRECTORY", "KIND", "END", "LAG", "FETCHED MS AGO", "CAUGHT UP MS AGO")
    data: Json = [dict(zip(keys, row, strict=True)) for row in rows]
    session.output.show(data, table(headings, rows))
    return OK


@click.command()
@click.argument("address", metavar="HOST:PORT")
@cluster_options
@command
def add(session: Session, address: str) -> int:
    """Make the observer at an address a voter, once it has caught up."""
    check_address(address, "HOST:PORT")
    from quorum.batches import decode_key  # noqa: PLC0415 - gRPC takes its time to load
    from quorum.core.messages import Voter  # noqa: PLC0415

    cluster_id, endpoint = _leads(session)

    progress = Progress(session.output)

    async def act(client: "QuorumClient") -> int:
        newcomer = decode_key((await client.describe(address)).node)

        async def tell(error: KraftError) -> None:
            if progress.is_due:
                progress.tell(f"{error.message}: {await _how_far(client, address)}")

        await client.add_voter_in_time(cluster_id, Voter(newcomer, address), tell)
        return newcomer.node_id

    node = _changed(lambda: with_controllers(session, act, [endpoint], patient=True))
    undo = f"kraftctl quorum remove {node}"
    session.output.show({"added": node}, f"{node} is a voter; undo: {undo}")
    return OK


@click.command()
@click.argument("node", metavar="ID[:DIRECTORY]")
@cluster_options
@command
def remove(session: Session, node: str) -> int:
    """Take a voter out; it goes on as an observer until it is stopped."""
    from quorum.core.messages import ReplicaKey  # noqa: PLC0415 - gRPC takes its time to load

    cluster_id, endpoint = _leads(session)
    voters = [each.voter for each in find_leader(session).voters]
    keys = [ReplicaKey(each.node_id, each.directory_id) for each in voters]
    named = [key for key in keys if node == str(key) or node_number(node) == key.node_id]
    if not named:
        known = ", ".join(map(str, keys))
        raise NotFound(f"{node} is no voter", hint=f"the voters are {known}")

    async def act(client: "QuorumClient") -> None:
        await client.remove_voter(endpoint, cluster_id, named[0])

    _changed(lambda: with_controllers(session, act, [endpoint], patient=True))
    gone = named[0].node_id
    session.output.show(
        {"removed": gone},
        f"{gone} is no longer a voter; undo, while it runs: kraftctl quorum add HOST:PORT",
    )
    return OK


async def _how_far(client: "QuorumClient", address: str) -> str:
    try:
        there = (await client.describe(address)).end_offset
        end = (await client.find_leader()).end_offset
    except KraftError as error:
        return short(error)
    return f"its log ends at {there}, that of the leader at {end}"


def _changed(change: Callable[[], T]) -> T:
    """Change the voters. The quorum gives its reasons against it in two words."""
    from quorum.client import refusal_of  # noqa: PLC0415 - gRPC takes its time to load
    from quorum.core.messages import Refusal  # noqa: PLC0415

    try:
        return change()
    except KraftError as error:
        match refusal_of(error):
            case Refusal.DUPLICATE_VOTER:
                text, hint = "it is a voter already", "kraftctl quorum status shows them"
            case Refusal.LAST_VOTER:
                text, hint = "it is the last voter", "add another one first: kraftctl quorum join"
            case _:
                raise
        raise Conflict(text, hint=hint) from None


def _leads(session: Session) -> "tuple[Uuid, str]":
    """The cluster's id, and where its leader listens."""
    leader = find_leader(session)
    if leader.cluster_id is None or leader.leader is None:
        raise KraftError(f"{leader.node.node_id} does not know its cluster")
    return leader.cluster_id, leader.leader.endpoint
