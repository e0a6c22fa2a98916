"""The state of a quorum as its controllers tell it: who leads, what each believes, who lags."""

from dataclasses import dataclass

from kraftlog.errors import KraftError
from kraftlog.rpc import raft_pb2
from kraftlog.types import Uuid
from quorum.batches import decode_key
from quorum.client import Description, QuorumClient
from quorum.output import Json, table

HEADINGS = ("NODE", "VOTER", "ROLE", "BELIEVES", "END", "LAG", "LAST FETCH", "CAUGHT UP", "ADDRESS")


@dataclass(frozen=True, slots=True)
class Member:
    """One replica: what it says, if it answers, and what the leader says of it, if there is one."""

    key: str
    node_id: int
    endpoint: str
    voter: bool
    said: Description | None
    seen: raft_pb2.ReplicaState | None


@dataclass(frozen=True, slots=True)
class Status:
    cluster_id: Uuid
    epoch: int
    leader: raft_pb2.Voter | None
    high_watermark: int
    members: tuple[Member, ...]
    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        return not self.problems


async def read_status(client: QuorumClient) -> Status:
    """Ask the given addresses, then every voter that they know. NetworkError if nobody answers."""
    first = await client.describe_all(client.addresses)
    said = {address: answer for address, answer in first if isinstance(answer, Description)}
    if not said:
        raise next(answer for _, answer in first if isinstance(answer, KraftError))
    newest = max(said.values(), key=_rank)
    others = [voter.endpoint for voter in newest.voters if voter.endpoint not in said]
    second = await client.describe_all(others)
    said |= {address: answer for address, answer in second if isinstance(answer, Description)}
    return _status(said)


def _rank(description: Description) -> tuple[int, bool, int]:
    """The best witness: of the newest epoch, the leader before others."""
    return description.header.epoch, description.role == "leader", description.end_offset


def _status(said: dict[str, Description]) -> Status:
    best = max(said.values(), key=_rank)
    leader = best.header.leader if best.header.HasField("leader") else None
    by_key = {str(decode_key(each.node)): each for each in said.values()}
    listed = [*((each, True) for each in best.voters), *((each, False) for each in best.observers)]
    members = tuple(_member(replica, by_key, voter=voter) for replica, voter in listed)
    known = {member.key for member in members}
    strangers = tuple(
        Member(key, each.node.node_id, address, voter=False, said=each, seen=None)
        for address, each in sorted(said.items())
        if (key := str(decode_key(each.node))) not in known
    )
    return Status(
        cluster_id=Uuid(best.cluster_id),
        epoch=best.header.epoch,
        leader=leader,
        high_watermark=max(each.high_watermark for each in said.values()),
        members=(*members, *strangers),
        problems=_problems(best, members, has_leader=leader is not None),
    )


def _member(
    replica: raft_pb2.ReplicaState, by_key: dict[str, Description], *, voter: bool
) -> Member:
    key = str(decode_key(replica.key))
    said = by_key.get(key)
    return Member(key, replica.key.node_id, replica.endpoint, voter, said, replica)


def _problems(
    best: Description, members: tuple[Member, ...], *, has_leader: bool
) -> tuple[str, ...]:
    found = []
    if not has_leader:
        found.append(f"nobody is known to lead epoch {best.header.epoch}")
    found += [
        f"voter {member.node_id} at {member.endpoint} does not answer, or another directory does"
        for member in members
        if member.voter and member.said is None
    ]
    return tuple(found)


# -- for people


def status_text(status: Status) -> str:
    leader = status.leader
    who = f"leader {leader.key.node_id} at {leader.endpoint}" if leader else "no leader"
    head = (
        f"cluster {status.cluster_id}  epoch {status.epoch}  {who}"
        f"  high watermark {status.high_watermark}"
    )
    rows = [_row(status, member) for member in status.members]
    return "\n".join([head, table(HEADINGS, rows), *status.problems])


def _row(status: Status, member: Member) -> tuple[str, ...]:
    said, seen = member.said, member.seen
    end = said.end_offset if said else (seen.end_offset if seen else -1)
    fetched = seen.last_fetch_ago_ms if seen and seen.HasField("last_fetch_ago_ms") else None
    caught_up = seen.caught_up_ago_ms if seen and seen.HasField("caught_up_ago_ms") else None
    return (
        str(member.node_id),
        "yes" if member.voter else "no",
        said.role if said else "?",
        _belief(said),
        str(end) if end >= 0 else "?",
        str(max(0, status.high_watermark - end)) if end >= 0 else "?",
        _ago(fetched),
        _ago(caught_up),
        member.endpoint or "-",
    )


def _belief(said: Description | None) -> str:
    if said is None:
        return "?"
    leader = said.header.leader.key.node_id if said.header.HasField("leader") else "nobody"
    return f"{leader} in {said.header.epoch}"


def _ago(ms: int | None) -> str:
    return "-" if ms is None else f"{ms} ms"


# -- for programs


def status_json(status: Status) -> Json:
    leader = status.leader
    return {
        "cluster_id": str(status.cluster_id),
        "epoch": status.epoch,
        "leader": {"node_id": leader.key.node_id, "endpoint": leader.endpoint} if leader else None,
        "high_watermark": status.high_watermark,
        "healthy": status.healthy,
        "problems": list(status.problems),
        "members": [_member_json(member) for member in status.members],
    }


def _member_json(member: Member) -> Json:
    said, seen = member.said, member.seen
    fields: dict[str, Json] = {
        "node_id": member.node_id,
        "key": member.key,
        "endpoint": member.endpoint,
        "voter": member.voter,
        "answers": said is not None,
    }
    if said is not None:
        leads = said.header.HasField("leader")
        fields |= {
            "role": said.role,
            "epoch": said.header.epoch,
            "believes": said.header.leader.key.node_id if leads else None,
            "log_start_offset": said.log_start_offset,
            "end_offset": said.end_offset,
            "high_watermark": said.high_watermark,
            "applied_offset": said.applied_offset,
            "refusals": [_note_json(note) for note in said.refusals],
        }
    if seen is not None and seen.HasField("last_fetch_ago_ms"):
        fields["last_fetch_ago_ms"] = seen.last_fetch_ago_ms
    return fields


def _note_json(note: raft_pb2.RefusalNote) -> Json:
    return {
        "peer": note.node_id,
        "ago_ms": note.ago_ms,
        "epoch": note.epoch,
        "request": note.request,
        "refusal": note.refusal,
        "ours": note.ours,
    }
