"""The metrics that controllers and brokers share: how fresh their copy of the metadata is."""

from kraftlog.metrics import Registry
from quorum.node import RaftNode
from quorum.snapshots import SnapshotKeeper


def register_replay(registry: Registry, node: RaftNode, snapshots: SnapshotKeeper) -> None:
    gauge = registry.gauge
    gauge(
        "kraftlog_metadata_applied_timestamp_seconds",
        "When the newest record that is applied was written.",
        lambda: node.driver.applier.applied_timestamp_ms / 1000,
    )
    gauge(
        "kraftlog_metadata_lag_seconds",
        "How old that record is while newer ones wait to be applied, else 0.",
        node.driver.apply_lag_seconds,
    )
    gauge(
        "kraftlog_snapshot_age_seconds",
        "Since the newest snapshot was written; without one, since the process began.",
        snapshots.age_seconds,
    )
    gauge("kraftlog_snapshot_bytes", "Of the newest snapshot.", snapshots.newest_bytes)
    registry.counter_of(
        "kraftlog_snapshots_rejected_total",
        "Snapshots of the leader that were downloaded and made no sense.",
        lambda: node.core.snapshots_rejected,
    )
