"""What an administrator says and hears."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kraftlog.types import Uuid

# -- topics


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. Without numbers the cluster's defaults hold: num.partitions and
    default.replication.factor. `assignments` names the brokers of each partition, leader first.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Sequence[Sequence[int]] = ()
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A leader of -1 is none."""

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    topic_id: Uuid
    partitions: tuple[PartitionDescription, ...]
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset of -1: no record is that late. A timestamp of -1: it is the offset of none."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """What one broker has of a partition, on its disk."""

    topic: str
    topic_id: Uuid
    partition: int
    log_dir: str
    size_bytes: int
    log_start_offset: int
    high_watermark: int
    end_offset: int
    leader_epoch: int
    is_leader: bool
    digest: int | None = None


# -- configs


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """A topic, a broker by its id, or, with an empty name, all brokers."""

    kind: Literal["topic", "broker"]
    name: str = ""

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        return cls("topic", name)

    @classmethod
    def broker(cls, broker_id: int | None = None) -> "ConfigResource":
        """One broker; without an id the default of all."""
        return cls("broker", "" if broker_id is None else str(broker_id))

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else f"all {self.kind}s"


@dataclass(frozen=True, slots=True)
class Append:
    """Add to a value that is a list."""

    value: str


@dataclass(frozen=True, slots=True)
class Subtract:
    """Take out of a value that is a list."""

    value: str


ConfigValue = str | Append | Subtract | None
"""A new value; None goes back to the default."""


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str
    source: str
    """topic, broker, cluster or default: where the value comes from."""


# -- the cluster and its quorum


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    broker_id: int
    broker_epoch: int
    incarnation_id: Uuid
    host: str
    port: int
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    fence_cause: str
    heartbeat_ago_ms: int | None
    """None: none since this controller became active."""
    applied_offset: int
    leaders: int
    replicas: int


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: Uuid
    controller_id: int
    epoch: int
    brokers: tuple[BrokerDescription, ...]
    topics: int
    partitions: int
    features: Mapping[str, int]
    offset: int
    """Of the metadata log; all below it has been seen."""


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller with one certain directory, and where it listens."""

    node_id: int
    directory_id: Uuid
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaProgress:
    voter: Voter
    end_offset: int
    last_fetch_ago_ms: int | None
    caught_up_ago_ms: int | None
    heard_ago_ms: int | None = None
    """When whoever describes this has last heard of it; None: never."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request between controllers that was refused, by the one that answers or by another."""

    node_id: int
    ago_ms: int
    epoch: int
    request: str
    refusal: str
    ours: bool


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """What one controller believes."""

    cluster_id: Uuid | None
    node: Voter
    role: str
    epoch: int
    leader: Voter | None
    high_watermark: int
    applied_offset: int
    end_offset: int
    log_start_offset: int
    voters: tuple[ReplicaProgress, ...]
    observers: tuple[ReplicaProgress, ...]
    refusals: tuple[Refused, ...]
    voted: Voter | None = None
    """For whom it has voted in this epoch."""
    leaderless_ms: int | None = None
    """For how long it has known of no leader; None: it knows one."""
    led_epoch: int = 0
    """The last epoch of which it knew a leader, or that in which it was started."""
    election_timeout_ms: int = 0
    """An election takes up to twice this; 0: it does not say."""
