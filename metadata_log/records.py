"""The records of the metadata log: what happened, one dataclass each.

A record says what changed and nothing else; what it means for the state is `replay`'s business.
`None` in a field of a change is "unchanged". Numbers in the comments are Kafka's record types.

A registration and a new partition carry the very value that the image keeps (`Broker`,
`PartitionState`), so that replay has nothing to copy and a snapshot nothing to rebuild.

What there are hundreds of thousands of is a NamedTuple: made in a third of the time.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kraftlog.types import Uuid

NO_LEADER = -1
"""The leader of a partition that has none."""

UNKNOWN_OFFSET = -1

METADATA_VERSION = "metadata.version"


class CauseKind(IntEnum):
    """Who or what made the controller write a record."""

    ADMIN_REQUEST = 1
    REGISTRATION = 2
    HEARTBEAT = 3
    SESSION_TIMEOUT = 4
    METADATA_LAG = 5
    CONTROLLED_SHUTDOWN = 6
    UNCLEAN_RESTART = 7
    UNFENCED = 8
    ALTER_PARTITION = 9
    PREFERRED_REBALANCE = 10
    PRODUCER_IDS = 11
    BOOTSTRAP = 12
    IDLE = 13
    SNAPSHOT = 14


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a record was written. It is in the log for people; no image and no rule depends on it."""

    kind: CauseKind
    text: str = ""

    def __str__(self) -> str:
        name = self.kind.name.lower().replace("_", " ")
        return f"{name}: {self.text}" if self.text else name


class FenceCause(IntEnum):
    """Why a broker is fenced."""

    NEVER_UNFENCED = 1
    """It registered and has not caught up with its own registration yet."""
    SESSION_TIMEOUT = 2
    METADATA_LAG = 3
    REQUESTED = 4
    """The broker asked for it."""
    SHUTDOWN = 5
    OPERATOR = 6
    """An operator did it, and only an operator undoes it."""


class Recovery(IntEnum):
    """Whether the leader came by an unclean election and has not settled its log yet."""

    RECOVERED = 0
    RECOVERING = 1


class ResourceType(IntEnum):
    """What has configs; Kafka's numbers."""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """A topic by its name, or a broker by its id; a broker without a name is all of them."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower()} {self.name or '(all)'}"


@dataclass(frozen=True, slots=True)
class Listener:
    """One address of a broker."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """The levels of a feature that a node can work with."""

    name: str
    min_level: int
    max_level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A registration: one incarnation of a broker."""

    id: int
    incarnation_id: Uuid
    epoch: int
    """The broker epoch: rises with every incarnation."""
    listeners: tuple[Listener, ...]
    log_dirs: tuple[Uuid, ...]
    """The directory ids of all its log directories."""
    features: tuple[FeatureRange, ...] = ()
    rack: str | None = None
    fence_cause: FenceCause | None = FenceCause.NEVER_UNFENCED
    """None: not fenced."""
    in_controlled_shutdown: bool = False
    fenced_at: int = UNKNOWN_OFFSET
    """The offset of the record that fenced it last, its registration included. It is not unfenced
    before it has applied that record. Unknown only on the way into the log."""

    @property
    def is_fenced(self) -> bool:
        return self.fence_cause is not None

    @property
    def is_active(self) -> bool:
        """Fit to be in an ISR and to lead."""
        return self.fence_cause is None and not self.in_controlled_shutdown


class PartitionState(NamedTuple):
    """A partition as the controller knows it. Ids are broker ids."""

    replicas: tuple[int, ...]
    """The first is the preferred leader."""
    isr: tuple[int, ...]
    leader: int
    """A member of the ISR, or NO_LEADER."""
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    """Eligible leader replicas: not in sync, yet sure to hold every committed record."""
    last_known_elr: tuple[int, ...] = ()
    """The last leader, while there is none."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovery: Recovery = Recovery.RECOVERED

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)


# -- brokers


@dataclass(frozen=True, slots=True)
class RegisterBroker:  # 0
    """A broker registers, for the first time or as a new incarnation."""

    broker: Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChange:  # 17
    """A registered broker is fenced, unfenced, or begins a controlled shutdown."""

    broker_id: int
    broker_epoch: int
    fenced: bool | None = None
    fence_cause: FenceCause | None = None
    """Given with fenced=True."""
    in_controlled_shutdown: bool | None = None
    """Only ever True: a new incarnation begins without."""


@dataclass(frozen=True, slots=True)
class UnregisterBroker:  # 1
    broker_id: int
    broker_epoch: int


# -- topics and partitions


@dataclass(frozen=True, slots=True)
class TopicRecord:  # 2
    """A topic begins to exist; its partitions follow."""

    name: str
    topic_id: Uuid


class PartitionRecord(NamedTuple):  # 3
    """A partition begins to exist. Its id is the number of partitions before it."""

    topic_id: Uuid
    partition: int
    state: PartitionState


class PartitionChange(NamedTuple):  # 5
    """Some of a partition's state changes.

    The partition epoch rises by one with each change. The leader epoch rises by one if and only if
    `leader` is given, even if it is the same leader as before.
    """

    topic_id: Uuid
    partition: int
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    recovery: Recovery | None = None


@dataclass(frozen=True, slots=True)
class RemoveTopic:  # 9
    """A topic ends, with its partitions and its configs."""

    topic_id: Uuid


# -- the rest


@dataclass(frozen=True, slots=True)
class ConfigRecord:  # 4
    """A config is set, or, with no value, removed."""

    resource: Resource
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class FeatureLevel:  # 12
    """A feature is finalized at a level; 0 removes it."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ProducerIds:  # 15
    """A broker got a block of producer ids; the next block begins here."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


@dataclass(frozen=True, slots=True)
class RequestDone:
    """An admin request was carried out, and this was its answer; a repeat gets the same."""

    client_id: bytes
    """Drawn at random by the client when it started."""
    request_id: int
    result: bytes


@dataclass(frozen=True, slots=True)
class NoOp:  # 20
    """Nothing changes; the log moves on, so that lag can be seen."""


Record = (
    RegisterBroker
    | BrokerChange
    | UnregisterBroker
    | TopicRecord
    | PartitionRecord
    | PartitionChange
    | RemoveTopic
    | ConfigRecord
    | FeatureLevel
    | ProducerIds
    | RequestDone
    | NoOp
)


class CausedRecord(NamedTuple):
    """A record as it stands in the log: with its cause."""

    record: Record
    cause: Cause
