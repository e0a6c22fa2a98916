"""Replicas, requests and strategies that the tests of this package share."""

from hypothesis import strategies as st

from kraftlog.types import Uuid
from quorum.core.messages import ReplicaKey, SnapshotId, Voter, VoterSet

CLUSTER = Uuid(b"cluster-id-16-by")
TIME_MS = 1_700_000_000_000


def key(node_id: int, disk: int = 1) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(b"%08d%08d" % (node_id, disk)))


def voter(node_id: int, endpoint: str = "") -> Voter:
    return Voter(key(node_id), endpoint or f"c{node_id}:9093")


def voters(*node_ids: int) -> VoterSet:
    return VoterSet.of(voter(node_id) for node_id in node_ids)


uuids = st.binary(min_size=16, max_size=16).map(Uuid)
keys = st.builds(ReplicaKey, st.integers(1, 2**31 - 1), uuids)
endpoints = st.text(min_size=1, max_size=20)
single_voters = st.builds(Voter, keys, endpoints)
voter_sets = st.lists(single_voters, max_size=5, unique_by=lambda each: each.key.node_id).map(
    VoterSet.of
)
offsets = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 2**31 - 1)
snapshot_ids = st.builds(SnapshotId, offsets, epochs)
