"""Requests as a test writes them: `vote(2, epoch=3, to=1)` is node 2 asking node 1."""

from kraftlog.types import Uuid
from quorum.core.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    ReplicaKey,
    SnapshotId,
    UpdateVoterRequest,
    Voter,
    VoteRequest,
)
from tests.quorum.core.cluster import CLUSTER_ID, key_of


def vote(
    sender: int | ReplicaKey,
    *,
    epoch: int,
    last: tuple[int, int] = (0, 0),
    pre_vote: bool = False,
    to: int | ReplicaKey | None = None,
    cluster_id: Uuid = CLUSTER_ID,
) -> VoteRequest:
    """`last` is the epoch of the last record and the end of the log."""
    return VoteRequest(
        cluster_id=cluster_id,
        sender=_key(sender),
        recipient=None if to is None else _key(to),
        epoch=epoch,
        last_epoch=last[0],
        end_offset=last[1],
        pre_vote=pre_vote,
    )


def begin(sender: int | ReplicaKey, *, epoch: int, endpoint: str = "") -> BeginQuorumEpochRequest:
    key = _key(sender)
    return BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        sender=key,
        recipient=None,
        epoch=epoch,
        endpoint=endpoint or f"n{key.node_id}",
    )


def end(sender: int | ReplicaKey, *successors: int, epoch: int) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        sender=_key(sender),
        recipient=None,
        epoch=epoch,
        successors=tuple(map(key_of, successors)),
    )


def fetch(
    sender: int | ReplicaKey,
    *,
    epoch: int,
    offset: int = 0,
    last_epoch: int = 0,
    high_watermark: int = 0,
    max_wait_ms: int = 500,
    max_bytes: int = 1 << 20,
    to: int | ReplicaKey | None = None,
) -> FetchRequest:
    return FetchRequest(
        cluster_id=CLUSTER_ID,
        sender=_key(sender),
        recipient=None if to is None else _key(to),
        epoch=epoch,
        offset=offset,
        last_epoch=last_epoch,
        high_watermark=high_watermark,
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
    )


def fetch_snapshot(
    sender: int, snapshot: SnapshotId, *, epoch: int, position: int = 0, max_bytes: int = 100
) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(
        cluster_id=CLUSTER_ID,
        sender=key_of(sender),
        recipient=None,
        epoch=epoch,
        snapshot=snapshot,
        position=position,
        max_bytes=max_bytes,
    )


def update(sender: int | ReplicaKey, voter: Voter, *, epoch: int) -> UpdateVoterRequest:
    return UpdateVoterRequest(
        cluster_id=CLUSTER_ID, sender=_key(sender), recipient=None, epoch=epoch, voter=voter
    )


def _key(node: int | ReplicaKey) -> ReplicaKey:
    return key_of(node) if isinstance(node, int) else node
