"""The keys of a broker process (`kraftlog.config_keys` has all others, and the list of all).

Where a default depends on the timing profile, the one here is that of the profile `kafka`.
"""

from kraftlog.config_key import Key, Scope
from kraftlog.config_types import (
    INT32_MAX,
    INT64_MAX,
    MINUTE_MS,
    SECOND_MS,
    Address,
    Addresses,
    Boolean,
    DurationMs,
    Integer,
    OptionalText,
)

# The node and where it is found.
BROKER_LISTENERS = Key(
    names={Scope.BROKER: "listeners"},
    value_type=Address(),
    default="127.0.0.1:9092",
    doc="Where a broker listens; with port 0 the system chooses one.",
)
BROKER_ADVERTISED_LISTENERS: Key[tuple[str, ...]] = Key(
    names={Scope.BROKER: "advertised.listeners"},
    value_type=Addresses(1),
    default=(),
    doc="Where clients and other brokers reach a broker, if not where it listens.",
)
BROKER_RACK: Key[str | None] = Key(
    names={Scope.BROKER: "broker.rack"},
    value_type=OptionalText(),
    default=None,
    doc="Where the broker stands: replicas are spread over racks, and readers prefer their own.",
)
CLUSTER_ID: Key[str | None] = Key(
    names={Scope.BROKER: "cluster.id"},
    value_type=OptionalText(),
    default=None,
    doc="The cluster that a new directory is for; one that is formatted knows it by itself.",
)
METADATA_LOG_DIR: Key[str | None] = Key(
    names={Scope.BROKER: "metadata.log.dir"},
    value_type=OptionalText(),
    default=None,
    doc="Where a broker keeps its copy of the metadata log, if not in the first of log.dirs.",
)

# The session with the active controller.
BROKER_HEARTBEAT_INTERVAL_MS = Key(
    names={Scope.BROKER: "broker.heartbeat.interval.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=2 * SECOND_MS,
    doc="How often a broker says that it is alive.",
)
INITIAL_BROKER_REGISTRATION_TIMEOUT_MS = Key(
    names={Scope.BROKER: "initial.broker.registration.timeout.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=MINUTE_MS,
    doc="A broker that could not register in this time ends.",
)
CONTROLLED_SHUTDOWN_TIMEOUT_MS = Key(
    names={Scope.BROKER: "controlled.shutdown.timeout.ms"},
    value_type=DurationMs(0, INT32_MAX),
    default=5 * MINUTE_MS,
    doc="How long a broker that is told to stop waits until others lead its partitions.",
)

# Replication.
REPLICA_LAG_TIME_MAX_MS = Key(
    names={Scope.BROKER: "replica.lag.time.max.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=30 * SECOND_MS,
    doc="A follower that was not caught up for so long leaves the in-sync replicas.",
)
REPLICA_FETCH_WAIT_MAX_MS = Key(
    names={Scope.BROKER: "replica.fetch.wait.max.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=500,
    doc="How long a follower's fetch waits for records.",
)
REPLICA_SOCKET_TIMEOUT_MS = Key(
    names={Scope.BROKER: "replica.socket.timeout.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=2 * SECOND_MS,
    doc="A leader that does not answer for so long, beyond the wait, is asked anew.",
)
REPLICA_FETCH_MAX_BYTES = Key(
    names={Scope.BROKER: "replica.fetch.max.bytes"},
    value_type=Integer(1, INT32_MAX),
    default=1 << 20,
    doc="What a follower asks of one partition at a time.",
)
REPLICA_FETCH_BACKOFF_MS = Key(
    names={Scope.BROKER: "replica.fetch.backoff.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=SECOND_MS,
    doc="The longest pause before a partition that could not be fetched is tried again.",
)
REPLICA_CHECKPOINT_INTERVAL_MS = Key(
    names={Scope.BROKER: "replica.high.watermark.checkpoint.interval.ms"},
    value_type=DurationMs(1, INT32_MAX),
    default=5 * SECOND_MS,
    doc="How often high watermarks are written to disk.",
)
FETCH_SESSION_SLOTS = Key(
    names={Scope.BROKER: "max.incremental.fetch.session.cache.slots"},
    value_type=Integer(0, INT32_MAX),
    default=1_000,
    doc="How many fetch sessions are kept; the least used one goes where one more is needed.",
)
LEADER_REPLICATION_THROTTLED_RATE: Key[int] = Key(
    names={Scope.BROKER: "leader.replication.throttled.rate"},
    value_type=Integer(1),
    default=INT64_MAX,
    doc="Bytes a second that a broker gives to throttled replicas which are not in sync.",
)
FOLLOWER_REPLICATION_THROTTLED_RATE: Key[int] = Key(
    names={Scope.BROKER: "follower.replication.throttled.rate"},
    value_type=Integer(1),
    default=INT64_MAX,
    doc="Bytes a second that a broker takes for its throttled replicas which are not in sync.",
)

# In the background.
LOG_RETENTION_CHECK_INTERVAL_MS = Key(
    names={Scope.BROKER: "log.retention.check.interval.ms"},
    value_type=DurationMs(1),
    default=5 * MINUTE_MS,
    doc="How often it is looked for segments that have expired.",
)
LOG_CLEANER_BACKOFF_MS = Key(
    names={Scope.BROKER: "log.cleaner.backoff.ms"},
    value_type=DurationMs(1),
    default=15 * SECOND_MS,
    doc="The pause when no log needs compaction.",
)

# Requests.
AUTO_CREATE_TOPICS_ENABLE = Key(
    names={Scope.BROKER: "auto.create.topics.enable"},
    value_type=Boolean(),
    default=True,
    doc="true: a topic that a producer names is created if it does not exist.",
)
SLOW_REQUEST_LOG_MS = Key(
    names={Scope.BROKER: "slow.request.log.ms"},
    value_type=DurationMs(0, INT32_MAX),
    default=SECOND_MS,
    doc="A request that takes longer is named in the log, without the time it was meant to wait.",
)

BROKER_KEYS: tuple[Key[object], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Key)
)

LIVE_NAMES = frozenset(
    key.name for key in (LEADER_REPLICATION_THROTTLED_RATE, FOLLOWER_REPLICATION_THROTTLED_RATE)
)
"""What may be set for brokers while they run, beside the defaults of topics."""
