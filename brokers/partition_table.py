"""The partitions that this broker has a replica of, by id, and why others are not here."""

from collections.abc import Iterator
from dataclasses import dataclass

from brokers.cluster import Assignment, BrokerInfo, ClusterView, PartitionId
from brokers.partition import Partition
from brokers.refusals import Refused, hint_of, not_leader, unknown_partition, unknown_topic_id
from brokers.settings import TopicSettings
from kraftlog.errors import StorageError
from kraftlog.types import TopicPartition


class NoCluster:
    """The view before any metadata was applied."""

    def broker(self, broker_id: int) -> BrokerInfo | None:  # noqa: ARG002 - nothing is known
        return None

    def assignment(self, partition: PartitionId) -> Assignment | None:  # noqa: ARG002
        return None

    def topic_settings(self, topic: str) -> TopicSettings:  # noqa: ARG002
        return TopicSettings()


@dataclass(frozen=True, slots=True)
class Damaged:
    """A log that is here but cannot be used, and why."""

    name: TopicPartition
    why: StorageError


class PartitionTable:
    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.view: ClusterView = NoCluster()
        self.hosted: dict[PartitionId, Partition] = {}
        self.damaged: dict[PartitionId, Damaged] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.hosted.values())

    def __len__(self) -> int:
        return len(self.hosted)

    def find(self, partition: PartitionId) -> Partition:
        """Raises Refused, with a hint where to go, if it is not here."""
        found = self.hosted.get(partition)
        if found is not None:
            return found
        if partition in self.damaged:
            raise Refused(self.damaged[partition].why)
        assignment = self.view.assignment(partition)
        if assignment is not None:
            name = f"{assignment.topic}-{partition.partition}"
            raise not_leader(name, self.broker_id, hint_of(assignment))
        if self.view.assignment(PartitionId(partition.topic_id, 0)) is not None:
            raise unknown_partition(partition.partition)
        raise unknown_topic_id(partition.topic_id.hex())
