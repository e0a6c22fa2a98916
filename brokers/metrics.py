"""The metrics of a broker. docs/BROKERS.md lists them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from brokers.lifecycle import BrokerState, Lifecycle
from brokers.metadata import MetadataFollower, MetadataPublisher
from kraftlog.metrics import Labels, Registry
from kraftlog.types import TopicPartition

PARTITIONS_SHOWN_MAX = 1_000


class Counts(Protocol):
    """How the data plane is doing, in numbers."""

    @property
    def replicas(self) -> int: ...
    @property
    def leaders(self) -> int: ...
    @property
    def under_replicated(self) -> int: ...
    @property
    def under_min_isr(self) -> int: ...
    @property
    def at_min_isr(self) -> int: ...
    @property
    def isr_shrinks(self) -> int: ...
    @property
    def isr_expands(self) -> int: ...
    @property
    def parked(self) -> dict[str, int]: ...
    @property
    def sessions(self) -> int: ...
    @property
    def isr_changes(self) -> int: ...
    @property
    def damaged(self) -> int: ...


def register_data_plane(registry: Registry, counts: Callable[[], Counts]) -> None:
    """Partitions and what waits for them. Counted when somebody looks."""
    gauge = registry.gauge
    gauge("kraftlog_partitions", "Replicas on this broker.", lambda: counts().replicas)
    gauge("kraftlog_partitions_led", "Partitions it leads.", lambda: counts().leaders)
    gauge(
        "kraftlog_partitions_under_replicated",
        "Partitions it leads with a replica that is not in sync.",
        lambda: counts().under_replicated,
    )
    gauge(
        "kraftlog_partitions_under_min_isr",
        "Partitions it leads with fewer in sync than min.insync.replicas.",
        lambda: counts().under_min_isr,
    )
    gauge(
        "kraftlog_partitions_at_min_isr",
        "Partitions it leads with just as many in sync as min.insync.replicas.",
        lambda: counts().at_min_isr,
    )
    registry.counter_of(
        "kraftlog_isr_shrinks_total",
        "ISRs of partitions it leads that lost a replica.",
        lambda: counts().isr_shrinks,
    )
    registry.counter_of(
        "kraftlog_isr_expands_total",
        "ISRs of partitions it leads that gained a replica.",
        lambda: counts().isr_expands,
    )
    gauge(
        "kraftlog_partitions_damaged",
        "Replicas whose log cannot be used.",
        lambda: counts().damaged,
    )
    gauge("kraftlog_fetch_sessions", "Fetch sessions in memory.", lambda: counts().sessions)
    gauge(
        "kraftlog_isr_changes_pending",
        "Changes of ISRs on their way to the controller.",
        lambda: counts().isr_changes,
    )
    gauge("kraftlog_requests_parked", "Requests that wait.", lambda: _by_kind(counts().parked))


def register_isrs(registry: Registry, sizes: Callable[[], Mapping[TopicPartition, int]]) -> None:
    """One number for each partition that this broker leads, while those are not too many."""

    def read() -> Iterable[tuple[Labels, float]]:
        found = sizes()
        many = len(found) > PARTITIONS_SHOWN_MAX
        return [] if many else [(_place(each), found[each]) for each in sorted(found)]

    registry.gauge(
        "kraftlog_partition_isr_size",
        f"In-sync replicas of what it leads; nothing above {PARTITIONS_SHOWN_MAX} partitions.",
        read,
    )


def _place(place: TopicPartition) -> Labels:
    return {"topic": place.topic, "partition": str(place.partition)}


def _by_kind(parked: dict[str, int]) -> Iterable[tuple[Labels, float]]:
    return [({"kind": kind}, number) for kind, number in sorted(parked.items())]


def register_lifecycle(registry: Registry, lifecycle: Lifecycle) -> None:
    registry.gauge(
        "kraftlog_broker_state",
        "1 for the state that the broker is in.",
        lambda: [
            ({"state": state.name.lower()}, state is lifecycle.state) for state in BrokerState
        ],
    )
    registry.gauge("kraftlog_broker_fenced", "1 while fenced.", lambda: lifecycle.is_fenced)
    registry.gauge(
        "kraftlog_broker_epoch", "Of the present registration.", lambda: lifecycle.broker_epoch
    )
    registry.counter_of(
        "kraftlog_heartbeats_failed_total",
        "Heartbeats without an answer.",
        lambda: lifecycle.heartbeats_failed,
    )


def register_metadata(
    registry: Registry,
    follower: MetadataFollower,
    publisher: MetadataPublisher,
    fetched_offset: Callable[[], int],
    *,
    node_id: Callable[[], int],
) -> None:
    registry.gauge(
        "kraftlog_metadata_applied_offset",
        "All below this offset holds in the data plane.",
        lambda: publisher.applied_offset,
    )
    registry.gauge(
        "kraftlog_metadata_lag_records",
        "Records that were fetched and are not applied yet.",
        lambda: [({"node": str(node_id())}, max(0, fetched_offset() - publisher.applied_offset))],
    )
    registry.counter_of(
        "kraftlog_metadata_errors_total",
        "Metadata records and configs that this broker could not use.",
        lambda: [
            ({"stage": "load"}, follower.errors),
            ({"stage": "apply"}, publisher.book.refused),
        ],
    )
