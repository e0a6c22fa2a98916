"""`kraftctl quorum why`: why nobody leads, and what to do about it."""

from collections.abc import Iterable

import click

from kraftctl.controllers import Belief, beliefs, leader_of
from kraftctl.diagnosis import (
    Electorate,
    electorate,
    endpoint_of,
    explain,
    heard,
    key_of,
    majority_text,
    replacement,
)
from kraftctl.exit_codes import OK, UNHEALTHY
from kraftctl.output import Json, table
from kraftctl.quorum_commands import short
from kraftctl.session import Session, cluster_options, command
from kraftlog.admin_types import QuorumDescription, Refused, Voter
from kraftlog.errors import KraftError


@click.command()
@cluster_options
@command
def why(session: Session) -> int:
    """Why there is no leader, or who has refused whom lately. Exit code 3: nobody leads."""
    found = beliefs(session)
    known, leader = electorate(found), leader_of(found.values())
    lines = [_head(known, leader)]
    for address, belief in found.items():
        lines += _told_by(address, belief, known)
    lines += _matrix(known)
    cause, fix = ("", "") if leader else explain(found)
    lines += [f"Cause: {cause}", f"Fix:   {fix}"] if cause else []
    session.output.show(_json(known, leader, cause, fix), "\n".join(lines))
    return OK if leader else UNHEALTHY


def _head(known: Electorate, leader: QuorumDescription | None) -> str:
    if leader:
        return f"leader {leader.node.node_id} of epoch {leader.epoch}"
    if not known.voters:
        return "NO LEADER: nobody who knows the voters answers"
    lasts = known.leaderless_ms
    since = (
        f" for {lasts / 1000:.1f} s (epochs {known.led_epoch} -> {known.epoch})"
        if lasts is not None
        else ""
    )
    return f"NO LEADER{since}: {majority_text(known)}"


def _told_by(address: str, belief: Belief, known: Electorate) -> list[str]:
    if isinstance(belief, KraftError):
        return [f" {address}  unreachable: {short(belief)}"]
    voted = f", voted for {belief.voted.node_id}" if belief.voted else ""
    head = (
        f" {belief.node.node_id}  {belief.role} of epoch {belief.epoch},"
        f" log ends at {belief.end_offset}{voted}{_voteless(belief, known)}"
    )
    return [head, *(f"     {note}" for note in told(belief.refusals))]


def _voteless(belief: QuorumDescription, known: Electorate) -> str:
    """Why one that answers does not count."""
    if belief not in known.voteless:
        return ""
    lost = [each for each in known.lost if each.node_id == belief.node.node_id]
    if not lost or not known.answering:
        return "; it has no vote"
    seed = endpoint_of(known, known.answering[0].node)
    return (
        f"; it has no vote: its directory is {belief.node.directory_id},"
        f" that of voter {lost[0].node_id} is {lost[0].directory_id}"
        f" ({replacement(lost[0], seed)})"
    )


def told(refusals: Iterable[Refused]) -> list[str]:
    """One line for each kind of refusal: how often it came, and when it came last."""
    kinds: dict[tuple[bool, int, str, str], list[Refused]] = {}
    for each in refusals:
        kind = (each.ours, each.node_id, each.request, each.refusal)
        kinds.setdefault(kind, []).append(each)
    newest = {kind: min(notes, key=lambda note: note.ago_ms) for kind, notes in kinds.items()}
    return [_note(newest[kind], len(kinds[kind])) for kind in kinds]


def _note(note: Refused, count: int) -> str:
    who = f"refused {note.node_id}'s" if note.ours else f"was refused by {note.node_id}: its"
    often = f", {count} times" if count > 1 else ""
    return f"{who} {note.request} in epoch {note.epoch}, {ago(note.ago_ms)}: {note.refusal}{often}"


def ago(ms: int) -> str:
    """As exact as is worth reading."""
    for unit, length_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= 2 * length_ms:
            return f"{ms // length_ms} {unit} ago"
    return f"{ms / 1000:.1f} s ago"


def _matrix(known: Electorate) -> list[str]:
    """Who has heard of whom, and when."""
    if len(known.voters) < 2 or not known.answering:
        return []
    rows = [
        (each.node.node_id, *(_heard(each, voter) for voter in known.voters))
        for each in known.answering
    ]
    headings = ("HEARD OF", *(str(each.node_id) for each in known.voters))
    return [f" {line}" for line in table(headings, rows).split("\n")]


def _heard(one: QuorumDescription, voter: Voter) -> str:
    if key_of(voter) == key_of(one.node):
        return "-"
    ago_ms = heard(one).get(key_of(voter))
    return "never" if ago_ms is None else ago(ago_ms)


def _json(known: Electorate, leader: QuorumDescription | None, cause: str, fix: str) -> Json:
    return {
        "leader": leader.node.node_id if leader else None,
        "epoch": known.epoch,
        "cause": cause,
        "fix": fix,
        "voters": len(known.voters) or None,
        "reachable": [each.node.node_id for each in known.answering],
        "without_vote": [each.node.node_id for each in known.voteless],
        "leaderless_ms": known.leaderless_ms,
        "led_epoch": known.led_epoch,
        "votes": [
            {"node": each.node.node_id, "voted": each.voted.node_id if each.voted else None}
            for each in known.answering
        ],
        "heard": [
            {"node": each.node.node_id, "peer": voter.node_id, "ago_ms": heard(each)[key_of(voter)]}
            for each in known.answering
            for voter in known.voters
            if key_of(voter) != key_of(each.node) and key_of(voter) in heard(each)
        ],
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
            for each in (*known.answering, *known.voteless)
            for note in each.refusals
        ],
    }
