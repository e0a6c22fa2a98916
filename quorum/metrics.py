"""The metrics of a quorum node. docs/QUORUM.md lists them."""

from collections.abc import Iterable
from functools import partial

from kraftlog.metrics import SECONDS_BUCKETS, Labels, Registry
from metadata_log.image import Image
from metadata_log.image import Role as ImageRole
from quorum.broker_watch import BrokerWatch
from quorum.controller import Controller
from quorum.core.messages import Refusal
from quorum.core.state import Leader
from quorum.node import RaftNode
from quorum.replay_metrics import register_replay
from quorum.snapshots import SnapshotKeeper

MILLISECOND_BUCKETS = tuple(each for each in SECONDS_BUCKETS if each >= 0.001)
FAILOVER_BUCKETS = (*(each for each in SECONDS_BUCKETS if each >= 0.1), 10.0, 20.0, 50.0)
ROLES = ("unattached", "prospective", "candidate", "leader", "follower", "resigned")


def register(registry: Registry, node: RaftNode, snapshots: SnapshotKeeper) -> None:
    """Everything that can be read off a node at any time."""
    _register_role(registry, node)
    _register_log(registry, node)
    _register_work(registry, node, snapshots)
    register_replay(registry, node, snapshots)


def _register_role(registry: Registry, node: RaftNode) -> None:
    core, gauge = node.core, registry.gauge
    gauge("kraftlog_raft_current_epoch", "The epoch.", lambda: core.epoch)
    gauge(
        "kraftlog_raft_current_leader",
        "The node id of the leader; -1: not known.",
        lambda: -1 if core.leader_id is None else core.leader_id,
    )
    gauge(
        "kraftlog_raft_current_vote",
        "The node id that this node voted for in this epoch; -1: none.",
        lambda: _vote(node),
    )
    gauge("kraftlog_raft_state", "1 for the role that the node is in.", lambda: _roles(node))
    gauge("kraftlog_raft_voter", "1 if the node is a voter.", lambda: core.is_voter)
    gauge("kraftlog_raft_voters", "How many voters there are.", lambda: len(core.voters))
    registry.counter_of(
        "kraftlog_raft_vote_rejected_total",
        "Votes and pre-votes that this node did not give.",
        lambda: _votes_refused(node),
    )
    elections = registry.histogram(
        "kraftlog_raft_election_seconds", "From the loss of a leader to the next that is known."
    )
    node.observe_election = elections.observe


def _register_log(registry: Registry, node: RaftNode) -> None:
    core, gauge = node.core, registry.gauge
    gauge(
        "kraftlog_raft_high_watermark",
        "All below this offset is committed.",
        lambda: core.high_watermark,
    )
    gauge("kraftlog_raft_log_start_offset", "Where the log begins.", lambda: core.log.start_offset)
    gauge("kraftlog_raft_log_end_offset", "Where the log ends.", lambda: core.log.end_offset)
    gauge(
        "kraftlog_raft_log_end_epoch", "The epoch of the last record.", lambda: core.log.last_epoch
    )
    gauge(
        "kraftlog_raft_applied_offset",
        "All below this offset the state machine has consumed.",
        lambda: node.driver.applier.applied_offset,
    )
    gauge(
        "kraftlog_raft_replica_lag_records",
        "On the leader, how far each replica is behind.",
        lambda: _lags(node),
    )


def _register_work(registry: Registry, node: RaftNode, snapshots: SnapshotKeeper) -> None:
    counts, counter = node.counts, registry.counter_of
    counter("kraftlog_raft_flushes_total", "Flushes of the log.", lambda: counts.flushes)
    counter(
        "kraftlog_raft_batches_proposed_total",
        "Batches appended as leader.",
        lambda: counts.batches_proposed,
    )
    counter(
        "kraftlog_raft_records_proposed_total",
        "Records appended as leader.",
        lambda: counts.records_proposed,
    )
    counter(
        "kraftlog_raft_records_fetched_total",
        "Records appended as follower.",
        lambda: node.store.records_fetched,
    )
    counter(
        "kraftlog_raft_idle_seconds_total",
        "How long the node had nothing to do.",
        lambda: counts.idle_seconds,
    )
    counter(
        "kraftlog_raft_requests_refused_total",
        "Requests refused because too many waited.",
        lambda: counts.requests_refused,
    )
    counter(
        "kraftlog_raft_snapshots_written_total",
        "Snapshots that this node wrote.",
        lambda: snapshots.written,
    )
    registry.gauge(
        "kraftlog_raft_snapshot_write_seconds",
        "How long the last snapshot of this node took.",
        lambda: snapshots.write_seconds,
    )
    commits = registry.histogram(
        "kraftlog_raft_commit_seconds", "From the append of a batch to its commit."
    )
    node.observe_commit = commits.observe


def register_watch(registry: Registry, controller: Controller, watch: BrokerWatch) -> None:
    """What the active controller does about brokers; the others show nothing or what they did."""
    registry.gauge(
        "kraftlog_metadata_lag_records",
        "On the active controller, how far each broker is behind, by its last heartbeat.",
        lambda: _broker_lags(controller, watch),
    )
    registry.counter_of(
        "kraftlog_controller_heartbeats_timed_out_total",
        "Brokers fenced because they fell silent.",
        lambda: watch.sessions_timed_out,
    )
    failovers = registry.histogram(
        "kraftlog_failover_seconds",
        "From a leading broker's last heartbeat to the commit of the next leaders.",
        FAILOVER_BUCKETS,
    )
    watch.observe_failover = failovers.observe


def register_decisions(registry: Registry, controller: Controller) -> None:
    """The queue of the active controller. Times are whole milliseconds."""
    counts, counter = controller.counts, registry.counter_of
    counter(
        "kraftlog_controller_new_active_total",
        "How often this node heard of a new active controller.",
        lambda: counts.leaders_seen,
    )
    counter(
        "kraftlog_controller_operations_total",
        "Operations that were begun.",
        lambda: counts.operations,
    )
    counter(
        "kraftlog_controller_operations_timed_out_total",
        "Operations that waited too long and were not begun.",
        lambda: counts.operations_timed_out,
    )
    queued = registry.histogram(
        "kraftlog_controller_queue_seconds", "How long operations waited.", MILLISECOND_BUCKETS
    )
    controller.observe_queue = queued.observe
    decided = registry.histogram(
        "kraftlog_controller_decision_seconds",
        "How long deciding and appending took, for each part of an operation.",
        MILLISECOND_BUCKETS,
    )
    controller.observe_decision = decided.observe


def register_cluster(registry: Registry, controller: Controller) -> None:
    """What the active controller keeps, as far as this node has it committed."""
    gauge = registry.gauge
    gauge(
        "kraftlog_controller_active",
        "1 if this controller is the active one.",
        lambda: controller.epoch is not None,
    )
    gauge(
        "kraftlog_cluster_brokers",
        "Brokers, by whether they are active or fenced.",
        lambda: _brokers(controller.committed),
    )
    gauge("kraftlog_cluster_topics", "Topics.", lambda: len(controller.committed.topics))
    gauge(
        "kraftlog_cluster_partitions", "Partitions.", lambda: controller.committed.partition_count
    )
    for name, doc, role in (
        ("offline", "Partitions without a leader.", ImageRole.LEADERLESS),
        ("displaced", "Partitions not led by the preferred replica.", ImageRole.DISPLACED),
        ("reassigning", "Partitions that move.", ImageRole.REASSIGNING),
    ):
        gauge(f"kraftlog_cluster_partitions_{name}", doc, partial(_places, controller, role))


def _broker_lags(controller: Controller, watch: BrokerWatch) -> Iterable[tuple[Labels, float]]:
    end = controller.committed.end_offset
    return [
        ({"node": str(broker_id)}, max(end - applied, 0))
        for broker_id, applied in sorted(watch.sessions.applied().items())
    ]


def _places(controller: Controller, role: ImageRole) -> int:
    return len(controller.committed.places(role))


def _brokers(image: Image) -> Iterable[tuple[Labels, float]]:
    fenced = sum(broker.is_fenced for broker in image.brokers.values())
    return [({"state": "active"}, len(image.brokers) - fenced), ({"state": "fenced"}, fenced)]


def _roles(node: RaftNode) -> Iterable[tuple[Labels, float]]:
    current = type(node.core.role).__name__.lower()
    return [({"state": role}, role == current) for role in ROLES]


def _vote(node: RaftNode) -> int:
    voted_key = node.store.election.voted_key
    return -1 if voted_key is None else voted_key.node_id


def _votes_refused(node: RaftNode) -> Iterable[tuple[Labels, float]]:
    counts = node.core.votes_refused
    return [({"reason": each.text}, counts.get(each, 0)) for each in Refusal if each in counts]


def _lags(node: RaftNode) -> Iterable[tuple[Labels, float]]:
    role, end = node.core.role, node.core.log.end_offset
    replicas = role.replicas if isinstance(role, Leader) else {}
    return [
        ({"node": str(key.node_id)}, end - max(progress.end_offset, 0))
        for key, progress in sorted(replicas.items())
    ]
