from dataclasses import dataclass, field

from brokers.metadata import MetadataFollower, MetadataPublisher
from brokers.metrics import (
    PARTITIONS_SHOWN_MAX,
    register_data_plane,
    register_isrs,
    register_lifecycle,
    register_metadata,
)
from brokers.replica_manager import Counts
from kraftlog.metrics import Registry
from kraftlog.types import TopicPartition
from tests.brokers.test_lifecycle import Controller
from tests.brokers.views import static
from tests.loops import run


@dataclass
class _Manager:
    counted: int = 0
    parked: dict[str, int] = field(default_factory=lambda: {"fetch": 4, "produce": 2})

    def counts(self) -> Counts:
        self.counted += 1
        return Counts(
            replicas=7,
            leaders=3,
            under_replicated=2,
            under_min_isr=1,
            at_min_isr=8,
            isr_shrinks=9,
            isr_expands=10,
            parked=self.parked,
            sessions=5,
            isr_changes=6,
            fetchers=2,
            damaged=0,
        )


def test_the_data_plane_in_numbers() -> None:
    registry, manager = Registry(), _Manager()
    register_data_plane(registry, manager.counts)
    assert manager.counted == 0  # nobody has looked yet
    text = registry.text()
    for line in (
        "kraftlog_partitions 7",
        "kraftlog_partitions_led 3",
        "kraftlog_partitions_under_replicated 2",
        "kraftlog_partitions_under_min_isr 1",
        "kraftlog_partitions_at_min_isr 8",
        "kraftlog_isr_shrinks_total 9",
        "kraftlog_isr_expands_total 10",
        "kraftlog_partitions_damaged 0",
        "kraftlog_fetch_sessions 5",
        "kraftlog_isr_changes_pending 6",
        'kraftlog_requests_parked{kind="fetch"} 4',
    ):
        assert f"\n{line}\n" in text


def test_the_broker_and_its_metadata_in_numbers() -> None:
    async def story() -> str:
        registry = Registry()
        lifecycle = Controller().lifecycle()
        await lifecycle.register()
        register_lifecycle(registry, lifecycle)
        follower = MetadataFollower()
        publisher = MetadataPublisher(follower, static())
        register_metadata(registry, follower, publisher, lambda: 12, node_id=lambda: 7)
        follower.errors = 3
        return registry.text()

    text = run(story())
    for line in (
        'kraftlog_broker_state{state="recovery"} 1',
        'kraftlog_broker_state{state="running"} 0',
        "kraftlog_broker_fenced 1",
        "kraftlog_broker_epoch 10",
        "kraftlog_heartbeats_failed_total 0",
        "kraftlog_metadata_applied_offset 0",
        'kraftlog_metadata_lag_records{node="7"} 12',
        'kraftlog_metadata_errors_total{stage="load"} 3',
        'kraftlog_metadata_errors_total{stage="apply"} 0',
    ):
        assert f"\n{line}\n" in text


def test_isrs_are_shown_one_by_one_while_they_are_few() -> None:
    sizes = {TopicPartition("t", 0): 3}
    registry = Registry()
    register_isrs(registry, lambda: sizes)
    assert 'kraftlog_partition_isr_size{partition="0",topic="t"} 3' in registry.text()
    sizes |= {TopicPartition("u", number): 1 for number in range(PARTITIONS_SHOWN_MAX)}
    assert "isr_size{" not in registry.text()
