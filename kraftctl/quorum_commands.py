"""`kraftctl quorum ...`"""

import sys
import time
from collections.abc import Mapping

import click

from kraftctl.controllers import Belief, beliefs, leader_of
from kraftctl.exit_codes import OK, UNHEALTHY, NotFound
from kraftctl.output import Json, table
from kraftctl.session import Session, cluster_options, command
from kraftlog.admin_types import QuorumDescription, Refused, Voter
from kraftlog.errors import KraftError, TimeoutError_

POLL_SECONDS = 0.1


def belief_row(address: str, belief: Belief) -> tuple[object, ...]:
    if isinstance(belief, KraftError):
        return ("?", address, "unreachable", "", None, None, belief.message)
    leader = f"{belief.leader.node_id}" if belief.leader else "nobody"
    return (
        belief.node.node_id,
        address,
        belief.role,
        f"{leader} e{belief.epoch}",
        belief.end_offset,
        belief.high_watermark,
        "",
    )


BELIEFS = ("NODE", "ADDRESS", "ROLE", "BELIEVES", "END", "HW", "")


@click.command()
@click.option("--wait", is_flag=True, help="Until there is a leader, and enough voters.")
@click.option("--voters", type=int, default=1, help="With --wait: how many.")
@cluster_options
@command
def status(session: Session, *, wait: bool, voters: int) -> int:
    """Who leads, and what each controller believes. Exit code 3: nobody leads."""
    from kraftlog.durations import to_seconds  # noqa: PLC0415

    deadline = time.monotonic() + to_seconds(session.timeout, "--timeout")
    while True:
        found = beliefs(session)
        leader = leader_of(found.values())
        if not wait or (leader is not None and len(leader.voters) >= voters):
            break
        if time.monotonic() > deadline:
            count = len(leader.voters) if leader else 0
            raise TimeoutError_(f"{count} voters and {'a' if leader else 'no'} leader so far")
        time.sleep(POLL_SECONDS)
    rows = [belief_row(address, belief) for address, belief in found.items()]
    keys = ("node", "address", "role", "believes", "end", "high_watermark", "problem")
    head = (
        f"leader {leader.node.node_id}, epoch {leader.epoch}, {len(leader.voters)} voters"
        if leader
        else "NO LEADER"
    )
    data: Json = {
        "leader": leader.node.node_id if leader else None,
        "epoch": leader.epoch if leader else None,
        "voters": len(leader.voters) if leader else None,
        "controllers": [dict(zip(keys, map(_plain, row), strict=True)) for row in rows],
    }
    session.output.show(data, f"{head}\n{table(BELIEFS, rows)}")
    return OK if leader else UNHEALTHY


def _plain(value: object) -> Json:
    return value if isinstance(value, int | str) or value is None else str(value)


@click.command()
@cluster_options
@command
def replication(session: Session) -> int:
    """How far each replica of the metadata log is, as the leader sees it."""
    with session.admin() as admin:
        leader = admin.describe_quorum()
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
@cluster_options
@command
def why(session: Session) -> int:
    """Why there is no leader, or who has refused whom lately. Exit code 3: nobody leads."""
    found = beliefs(session)
    leader = leader_of(found.values())
    reachable = [each for each in found.values() if isinstance(each, QuorumDescription)]
    voters = max((len(each.voters) for each in reachable), default=len(found))
    lines = [
        f"leader {leader.node.node_id} of epoch {leader.epoch}"
        if leader
        else f"NO LEADER: a majority is {voters // 2 + 1} of {voters} voters,"
        f" {len(reachable)} answer"
    ]
    for address, belief in found.items():
        lines += _explain(address, belief)
    cause, fix = ("", "") if leader else explain_trouble(found)
    lines += [f"Cause: {cause}", f"Fix:   {fix}"] if cause else []
    data: Json = {
        "leader": leader.node.node_id if leader else None,
        "cause": cause,
        "fix": fix,
        "voters": voters,
        "reachable": [each.node.node_id for each in reachable],
        "refusals": [
            {
                "node": each.node.node_id,
                "peer": note.node_id,
                "request": note.request,
                "refusal": note.refusal,
                "epoch": note.epoch,
                "ago_ms": note.ago_ms,
                "ours": note.ours,
            }
            for each in reachable
            for note in each.refusals
        ],
    }
    session.output.show(data, "\n".join(lines))
    return OK if leader else UNHEALTHY


def explain_trouble(found: Mapping[str, Belief]) -> tuple[str, str]:
    """Why nobody leads, most likely, and what to do about it."""
    said = [each for each in found.values() if isinstance(each, QuorumDescription)]
    silent = [address for address, each in found.items() if isinstance(each, KraftError)]
    voters = max((len(each.voters) for each in said), default=len(found))
    majority = voters // 2 + 1
    restart = f"start {', '.join(silent)} again" if silent else ""
    if len(said) < majority:
        return f"a majority is {majority} of {voters} voters, and {len(said)} answer", restart
    notes = [(each, note) for each in said for note in each.refusals if note.ours]
    behind = sorted({note.node_id for _, note in notes if note.refusal == "log behind"})
    longest = max(said, key=lambda each: each.end_offset)
    if behind:
        names = ", ".join(map(str, behind))
        return (
            f"{names} asked for votes with a log that is behind: others hold more of it",
            f"wait until {longest.node.node_id} campaigns, whose log ends at {longest.end_offset}"
            + (f"; or {restart}" if restart else ""),
        )
    rivals = {note.node_id for _, note in notes if note.refusal == "already voted"}
    if rivals:
        names = ", ".join(map(str, sorted(rivals | {each.node.node_id for each, _ in notes})))
        return (
            f"a split vote: {names} campaign at the same time, and none has {majority} votes",
            "wait: each draws another pause before it tries again"
            + (f"; {restart}" * bool(silent)),
        )
    return "an election goes on, or the voters do not reach each other", restart or "ask again soon"


def _explain(address: str, belief: Belief) -> list[str]:
    if isinstance(belief, KraftError):
        return [f" {address}  unreachable: {belief.message}"]
    head = f" {belief.node.node_id}  {belief.role} of epoch {belief.epoch}, log ends at"
    return [f"{head} {belief.end_offset}", *(f"     {_note(note)}" for note in belief.refusals)]


def _note(note: Refused) -> str:
    who = f"refused {note.node_id}'s" if note.ours else f"was refused by {note.node_id}: its"
    return f"{who} {note.request} in epoch {note.epoch}, {note.ago_ms} ms ago: {note.refusal}"


@click.command()
@click.argument("address", metavar="HOST:PORT")
@cluster_options
@command
def add(session: Session, address: str) -> int:
    """Make the observer at an address a voter."""
    with session.admin() as admin:
        newcomer = admin.describe_quorum(address).node
        admin.add_voter(Voter(newcomer.node_id, newcomer.directory_id, address))
    session.output.show(
        {"added": newcomer.node_id},
        f"{newcomer.node_id} is a voter; undo: kraftctl quorum remove {newcomer.node_id}",
    )
    return OK


@click.command()
@click.argument("node", type=int)
@cluster_options
@command
def remove(session: Session, node: int) -> int:
    """Take a voter out."""
    with session.admin() as admin:
        voters = {each.voter.node_id: each.voter for each in admin.describe_quorum().voters}
        if node not in voters:
            known = ", ".join(map(str, sorted(voters)))
            raise NotFound(f"{node} is no voter", hint=f"the voters are {known}")
        admin.remove_voter(voters[node])
    session.output.show({"removed": node}, f"{node} is no longer a voter")
    return OK


_PASS_ON = {"ignore_unknown_options": True, "help_option_names": ()}


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def form(arguments: tuple[str, ...]) -> None:
    """Found a cluster: format a directory as its first voter, and run."""
    _controller("form", arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def join(arguments: tuple[str, ...]) -> None:
    """Become a member of a running cluster, and run."""
    _controller("join", arguments)


def _controller(verb: str, arguments: tuple[str, ...]) -> None:
    from quorum.cli import main  # noqa: PLC0415 - loads the server

    sys.exit(main([verb, *arguments]))
