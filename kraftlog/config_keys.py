"""Every configuration key, declared once: its names, type, range, default and meaning.

Names and defaults are Kafka's. What is set per topic has two names, as in Kafka: that of the topic
config (`segment.bytes`), and that of the broker's default for all topics (`log.segment.bytes`).
A key is declared here when something reads it, not before.
"""

from typing import TypeVar

from kraftlog.broker_keys import BROKER_KEYS
from kraftlog.client_keys import CLIENT_KEYS
from kraftlog.config_key import ENVIRONMENT_PREFIX as ENVIRONMENT_PREFIX  # noqa: PLC0414
from kraftlog.config_key import Key as Key  # noqa: PLC0414 - part of this module
from kraftlog.config_key import Scope as Scope  # noqa: PLC0414
from kraftlog.config_key import environment_name as environment_name  # noqa: PLC0414
from kraftlog.config_key import shorten as shorten  # noqa: PLC0414
from kraftlog.config_types import (
    DAY_MS,
    FLOAT64_MAX,
    HOUR_MS,
    INT32_MAX,
    INT64_MAX,
    MINUTE_MS,
    Address,
    Addresses,
    Boolean,
    Choice,
    DurationMs,
    Integer,
    NameSet,
    Paths,
    Real,
    ThrottledReplicas,
    ValueType,
)
from kraftlog.controller_keys import CONTROLLER_KEYS
from kraftlog.types import TimestampType

T = TypeVar("T")

UNLIMITED = -1
FOREVER_MS = INT64_MAX


def _of_topic(
    name: str, broker_name: str, *, value_type: ValueType[T], default: T, doc: str
) -> Key[T]:
    names = {Scope.TOPIC: name, Scope.BROKER: broker_name}
    return Key(names=names, value_type=value_type, default=default, doc=doc)


# Segments and their indexes. Kafka 4 asks for segments of at least 1 MiB; the floor here is that of
# Kafka before it, so that tests and drills can roll often.
SEGMENT_BYTES = _of_topic(
    "segment.bytes",
    "log.segment.bytes",
    value_type=Integer(14, INT32_MAX),
    default=1 << 30,
    doc="A segment that would grow past this size is closed and a new one begun.",
)
SEGMENT_MS = _of_topic(
    "segment.ms",
    "log.roll.ms",
    value_type=DurationMs(1),
    default=7 * DAY_MS,
    doc="A segment whose first record is older than this is closed at the next append.",
)
INDEX_INTERVAL_BYTES = _of_topic(
    "index.interval.bytes",
    "log.index.interval.bytes",
    value_type=Integer(0, INT32_MAX),
    default=4_096,
    doc="About one entry per this many bytes of log; less finds faster and takes more room.",
)
# Kafka's floor is 4 bytes, which holds no entry at all; 12 hold one of either index.
SEGMENT_INDEX_BYTES = _of_topic(
    "segment.index.bytes",
    "log.index.size.max.bytes",
    value_type=Integer(12, INT32_MAX),
    default=10 << 20,
    doc="A segment whose index would grow past this size is closed and a new one begun.",
)

# How long data stays.
CLEANUP_POLICY = _of_topic(
    "cleanup.policy",
    "log.cleanup.policy",
    value_type=NameSet(("compact", "delete")),
    default=frozenset({"delete"}),
    doc="delete: old segments go. compact: the last value of each key stays. Or both.",
)
RETENTION_MS = _of_topic(
    "retention.ms",
    "log.retention.ms",
    value_type=DurationMs(UNLIMITED),
    default=7 * DAY_MS,
    doc="With cleanup.policy delete, a segment goes when its newest record is older; -1: never.",
)
RETENTION_BYTES = _of_topic(
    "retention.bytes",
    "log.retention.bytes",
    value_type=Integer(UNLIMITED),
    default=UNLIMITED,
    doc="With cleanup.policy delete, the oldest segments of a larger partition go; -1: never.",
)
FILE_DELETE_DELAY_MS = _of_topic(
    "file.delete.delay.ms",
    "log.segment.delete.delay.ms",
    value_type=DurationMs(0),
    default=MINUTE_MS,
    doc="A deleted segment is renamed at once and unlinked after this time.",
)

# Compaction.
MIN_CLEANABLE_DIRTY_RATIO = _of_topic(
    "min.cleanable.dirty.ratio",
    "log.cleaner.min.cleanable.ratio",
    value_type=Real(0, 1),
    default=0.5,
    doc="A log is compacted when this part of it has not been compacted yet.",
)
MIN_COMPACTION_LAG_MS = _of_topic(
    "min.compaction.lag.ms",
    "log.cleaner.min.compaction.lag.ms",
    value_type=DurationMs(0),
    default=0,
    doc="A record stays uncompacted for at least this long.",
)
MAX_COMPACTION_LAG_MS = _of_topic(
    "max.compaction.lag.ms",
    "log.cleaner.max.compaction.lag.ms",
    value_type=DurationMs(1),
    default=FOREVER_MS,
    doc="A log with a record uncompacted for this long is compacted whatever its dirty ratio.",
)
DELETE_RETENTION_MS = _of_topic(
    "delete.retention.ms",
    "log.cleaner.delete.retention.ms",
    value_type=DurationMs(0),
    default=DAY_MS,
    doc="A tombstone stays this long after it was first compacted, so that readers see it.",
)

# Records.
MAX_MESSAGE_BYTES = _of_topic(
    "max.message.bytes",
    "message.max.bytes",
    value_type=Integer(0, INT32_MAX),
    default=(1 << 20) + 12,
    doc="The largest record batch that is accepted, as compressed by its producer.",
)
MESSAGE_TIMESTAMP_TYPE = _of_topic(
    "message.timestamp.type",
    "log.message.timestamp.type",
    value_type=Choice({"CreateTime": TimestampType.CREATE, "LogAppendTime": TimestampType.APPEND}),
    default=TimestampType.CREATE,
    doc="Whose clock stamps a record: the producer's, or the broker's when it appends.",
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = _of_topic(
    "message.timestamp.before.max.ms",
    "log.message.timestamp.before.max.ms",
    value_type=DurationMs(0),
    default=FOREVER_MS,
    doc="A producer's timestamp that is older than this when its record arrives is refused.",
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = _of_topic(
    "message.timestamp.after.max.ms",
    "log.message.timestamp.after.max.ms",
    value_type=DurationMs(0),
    default=HOUR_MS,
    doc="A producer's timestamp that is further in the future than this is refused.",
)
PRODUCER_ID_EXPIRATION_MS = Key(
    names={Scope.BROKER: "producer.id.expiration.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=DAY_MS,
    doc="A producer silent for this long is forgotten, and with it what finds its duplicates.",
)

# Directories and the cleaner, for all logs of a process together.
LOG_DIRS: Key[tuple[str, ...]] = Key(
    names={Scope.BROKER: "log.dirs", Scope.CONTROLLER: "log.dirs"},
    value_type=Paths(),
    default=(),
    doc="The directories that hold the logs; a new partition goes to the one with the fewest.",
)
LOG_CLEANER_ENABLE = Key(
    names={Scope.BROKER: "log.cleaner.enable"},
    value_type=Boolean(),
    default=True,
    doc="false stops all compaction, and compacted topics grow without bound.",
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = Key(
    names={Scope.BROKER: "log.cleaner.dedupe.buffer.size"},
    value_type=Integer(1 << 20),
    default=128 << 20,
    doc="Memory for the offset map, 24 bytes a key; a log with more keys takes several passes.",
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = Key(
    names={Scope.BROKER: "log.cleaner.io.max.bytes.per.second"},
    value_type=Real(1, FLOAT64_MAX),
    default=FLOAT64_MAX,
    doc="What compaction reads and writes together, at most, on average.",
)

# Replication. Whoever decides and whoever serves must agree on these, so controllers have them too.
MIN_INSYNC_REPLICAS = Key(
    names={
        Scope.TOPIC: "min.insync.replicas",
        Scope.BROKER: "min.insync.replicas",
        Scope.CONTROLLER: "min.insync.replicas",
    },
    value_type=Integer(1, INT32_MAX),
    default=1,
    doc="With fewer replicas in sync acks=all is refused; at most the replication factor counts.",
)
UNCLEAN_LEADER_ELECTION_ENABLE = Key(
    names={
        Scope.TOPIC: "unclean.leader.election.enable",
        Scope.BROKER: "unclean.leader.election.enable",
        Scope.CONTROLLER: "unclean.leader.election.enable",
    },
    value_type=Boolean(),
    default=False,
    doc="true: with nobody in sync any live replica may lead, and records that it lacks are lost.",
)
FLUSH_BEFORE_ACK = Key(
    names={
        Scope.TOPIC: "flush.before.ack",
        Scope.BROKER: "log.flush.before.ack",
        Scope.CONTROLLER: "log.flush.before.ack",
    },
    value_type=Boolean(),
    default=False,
    doc="true: a copy counts only once it is flushed, so that even a power cut loses nothing.",
)
LEADER_REPLICATION_THROTTLED_REPLICAS: Key[tuple[str, ...]] = Key(
    names={Scope.TOPIC: "leader.replication.throttled.replicas"},
    value_type=ThrottledReplicas(),
    default=(),
    doc="Replicas, as partition:broker, that are throttled when they serve others; *: all.",
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS: Key[tuple[str, ...]] = Key(
    names={Scope.TOPIC: "follower.replication.throttled.replicas"},
    value_type=ThrottledReplicas(),
    default=(),
    doc="Replicas, as partition:broker, that are throttled when they copy from others; *: all.",
)
NUM_PARTITIONS = Key(
    names={Scope.BROKER: "num.partitions", Scope.CONTROLLER: "num.partitions"},
    value_type=Integer(1, INT32_MAX),
    default=1,
    doc="How many partitions a new topic has, if nobody says.",
)
DEFAULT_REPLICATION_FACTOR = Key(
    names={
        Scope.BROKER: "default.replication.factor",
        Scope.CONTROLLER: "default.replication.factor",
    },
    value_type=Integer(1, 2**15 - 1),
    default=1,
    doc="How many replicas the partitions of a new topic have, if nobody says.",
)

# The node and where it is found.
NODE_ID = Key(
    names={Scope.BROKER: "node.id", Scope.CONTROLLER: "node.id"},
    value_type=Integer(-1, INT32_MAX),
    default=-1,
    doc="Who this node is, 1 or more; -1: what meta.properties in its directory says.",
)
CONTROLLER_LISTENERS = Key(
    names={Scope.CONTROLLER: "listeners"},
    value_type=Address(),
    default="127.0.0.1:9093",
    doc="Where a controller listens; with port 0 the system chooses one.",
)
CONTROLLER_ADVERTISED_LISTENERS: Key[tuple[str, ...]] = Key(
    names={Scope.CONTROLLER: "advertised.listeners"},
    value_type=Addresses(1),
    default=(),
    doc="Where others reach a controller, if not where it listens.",
)
METRICS_LISTENERS: Key[tuple[str, ...]] = Key(
    names={Scope.CONTROLLER: "metrics.listeners", Scope.BROKER: "metrics.listeners"},
    value_type=Addresses(1),
    default=(),
    doc="Where Prometheus finds the metrics, as http://host:port/metrics; none: nowhere.",
)


def _of_quorum(name: str, *, value_type: ValueType[T], default: T, doc: str) -> Key[T]:
    """For controllers, and for brokers, which observe the same log."""
    names = {Scope.CONTROLLER: name, Scope.BROKER: name}
    return Key(names=names, value_type=value_type, default=default, doc=doc)


# The metadata quorum. The defaults are those of the timing profile `kafka`.
TIMING_PROFILE = _of_quorum(
    "timing.profile",
    value_type=Choice({"kafka": "kafka", "fast": "fast"}),
    default="kafka",
    doc="What the times below are where they are not set: Kafka's, or short ones for one machine.",
)
QUORUM_PEERS: Key[tuple[str, ...]] = _of_quorum(
    "quorum.peers",
    value_type=Addresses(),
    default=(),
    doc="Where controllers may be found. It makes nobody a voter: voters are in the log.",
)
QUORUM_FETCH_TIMEOUT_MS = _of_quorum(
    "controller.quorum.fetch.timeout.ms",
    value_type=DurationMs(8, INT32_MAX),
    default=2_000,
    doc="Silence of the leader after which a voter asks for pre-votes; a fetch waits a quarter.",
)
QUORUM_ELECTION_TIMEOUT_MS = _of_quorum(
    "controller.quorum.election.timeout.ms",
    value_type=DurationMs(1, INT32_MAX),
    default=1_000,
    doc="An election takes at most a time drawn from this to twice this.",
)
QUORUM_ELECTION_BACKOFF_MAX_MS = _of_quorum(
    "controller.quorum.election.backoff.max.ms",
    value_type=DurationMs(1, INT32_MAX),
    default=1_000,
    doc="The longest pause after a lost election.",
)
QUORUM_REQUEST_TIMEOUT_MS = _of_quorum(
    "controller.quorum.request.timeout.ms",
    value_type=DurationMs(1, INT32_MAX),
    default=2_000,
    doc="When a request to another controller counts as lost.",
)
QUORUM_RETRY_BACKOFF_MS = _of_quorum(
    "controller.quorum.retry.backoff.ms",
    value_type=DurationMs(1, INT32_MAX),
    default=20,
    doc="The pause before a controller that failed is asked again.",
)

# The metadata log and its snapshots.
METADATA_SEGMENT_BYTES = _of_quorum(
    "metadata.log.segment.bytes",
    value_type=Integer(14, INT32_MAX),
    default=1 << 30,
    doc="A segment of the metadata log that would grow past this is closed and a new one begun.",
)
METADATA_SEGMENT_MS = _of_quorum(
    "metadata.log.segment.ms",
    value_type=DurationMs(1),
    default=7 * DAY_MS,
    doc="A segment of the metadata log older than this is closed at the next append.",
)
METADATA_SNAPSHOT_BYTES = _of_quorum(
    "metadata.log.max.record.bytes.between.snapshots",
    value_type=Integer(1),
    default=20 << 20,
    doc="So many bytes of log after the last snapshot of the metadata a new one is written.",
)
METADATA_SNAPSHOT_INTERVAL_MS = _of_quorum(
    "metadata.log.max.snapshot.interval.ms",
    value_type=DurationMs(0),
    default=HOUR_MS,
    doc="A snapshot is written after this time if anything has changed; 0: by bytes alone.",
)
METADATA_RETENTION_BYTES = _of_quorum(
    "metadata.max.retention.bytes",
    value_type=Integer(UNLIMITED),
    default=100 << 20,
    doc="The oldest log and snapshots go when both together are larger than this; -1: never.",
)
METADATA_RETENTION_MS = _of_quorum(
    "metadata.max.retention.ms",
    value_type=DurationMs(UNLIMITED),
    default=7 * DAY_MS,
    doc="A snapshot older than this goes, with the log below the next one; -1: never.",
)

# All of the above; a list of names beside the declarations would be one more place to forget.
ALL_KEYS: tuple[Key[object], ...] = (
    *(value for value in tuple(globals().values()) if isinstance(value, Key)),
    *BROKER_KEYS,
    *CONTROLLER_KEYS,
    *CLIENT_KEYS,
)
