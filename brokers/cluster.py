"""What the data plane knows of the cluster: partitions and brokers as the metadata log has them.

The metadata log has more. Whoever follows it hands over these few values, in the order of the log.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from brokers.settings import TopicSettings

NO_LEADER = -1


class PartitionId(NamedTuple):
    """A partition by the id of its topic, 16 plain bytes: a topic that is created anew under an old
    name is another one. A tuple of plain values, since every request looks partitions up by it.
    """

    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """One partition in metadata: who has it, who leads it, who is in sync."""

    id: PartitionId
    topic: str
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """One registered broker in metadata."""

    broker_id: int
    epoch: int
    fenced: bool = False
    shutting_down: bool = False
    rack: str | None = None
    endpoint: str = ""

    @property
    def serves(self) -> bool:
        """Whether it may be counted on: in an ISR, or to read from."""
        return not self.fenced and not self.shutting_down


class BrokerLookup(Protocol):
    def broker(self, broker_id: int) -> BrokerInfo | None:
        """A broker as the applied metadata has it; None if it is not registered."""
        ...


class ClusterView(BrokerLookup, Protocol):
    """The metadata at one offset. It never changes; the next one takes its place."""

    def assignment(self, partition: PartitionId) -> Assignment | None:
        """Any partition of the cluster, also one that this broker has nothing of."""
        ...

    def topic_settings(self, topic: str) -> TopicSettings:
        """What holds for a topic: its own configs over the defaults of the broker."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """What differs from the view before, as far as this broker is concerned."""

    removed: Sequence[PartitionId] = ()
    """The topic is deleted, or this broker is no longer a replica. The log goes."""
    changed: Sequence[Assignment] = ()
    """New or altered partitions with this broker among their replicas."""
    brokers: Collection[int] = ()
    """Brokers that were registered, fenced, unfenced, began to shut down, or are gone."""
    configs: Collection[str] = ()
    """Topics whose settings may have changed, also by a default of the broker."""
