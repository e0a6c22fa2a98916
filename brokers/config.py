"""What a broker process is told, from Kafka's dotted keys.

Flags win over the environment, that over a file, that over the timing profile, that over Kafka's
defaults.
"""

import os
from dataclasses import dataclass, field

from brokers.lifecycle import LifecycleTiming
from brokers.settings import ReplicaSettings
from kraftlog import broker_keys, controller_keys
from kraftlog import config_keys as keys
from kraftlog.config import DEFAULT_SOURCE, Config
from kraftlog.config_keys import Key
from kraftlog.errors import ConfigError
from kraftlog.types import Uuid

FETCH_WAIT_MS_MAX = 500

_WILDCARDS = ("0.0.0.0", "[::]")  # noqa: S104 - to be refused as an address for others


@dataclass(frozen=True, slots=True)
class Profile:
    """Times that depend on how far apart the nodes are, in milliseconds."""

    heartbeat_ms: int
    session_ms: int
    registration_ms: int
    shutdown_ms: int
    replica_lag_ms: int
    fetch_timeout_ms: int

    @property
    def fetch_wait_ms(self) -> int:
        return min(FETCH_WAIT_MS_MAX, self.fetch_timeout_ms // 4)


PROFILES = {
    "kafka": Profile(
        heartbeat_ms=broker_keys.BROKER_HEARTBEAT_INTERVAL_MS.default,
        session_ms=controller_keys.BROKER_SESSION_TIMEOUT_MS.default,
        registration_ms=broker_keys.INITIAL_BROKER_REGISTRATION_TIMEOUT_MS.default,
        shutdown_ms=broker_keys.CONTROLLED_SHUTDOWN_TIMEOUT_MS.default,
        replica_lag_ms=broker_keys.REPLICA_LAG_TIME_MAX_MS.default,
        fetch_timeout_ms=broker_keys.REPLICA_SOCKET_TIMEOUT_MS.default,
    ),
    "fast": Profile(
        heartbeat_ms=150,
        session_ms=1_500,
        registration_ms=60_000,
        shutdown_ms=10_000,
        replica_lag_ms=2_000,
        # Not shorter: metadata tells who leads now long before a fetch from a dead leader times
        # out, and each idle fetch wakes two processes.
        fetch_timeout_ms=2_000,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """One broker process."""

    static: Config
    """Everything that was set, for what is read key by key: the defaults of topics."""
    log_dirs: tuple[str, ...]
    metadata_dir: str
    """One of the log directories, or another one of its own."""
    node_id: int | None = None
    """None: what the directory says, or what the controller hands out."""
    cluster_id: str | None = None
    listen: str = broker_keys.BROKER_LISTENERS.default
    advertise: str | None = None
    peers: tuple[str, ...] = ()
    rack: str | None = None
    lifecycle: LifecycleTiming
    shutdown_ms: int
    replica: ReplicaSettings = field(default_factory=ReplicaSettings)
    auto_create: bool = True
    slow_request_ms: int = broker_keys.SLOW_REQUEST_LOG_MS.default
    metrics: str | None = None

    def __post_init__(self) -> None:
        if self.node_id is not None and self.node_id < 1:
            raise ConfigError(f"node.id = {self.node_id}", hint="node ids begin at 1")
        if self.advertise is None and self.listen.rpartition(":")[0] in _WILDCARDS:
            raise ConfigError(
                f"listeners = {self.listen} is every address of this machine, and others cannot"
                " dial that",
                hint="say with advertised.listeners where they reach it",
            )
        if not self.peers:
            raise ConfigError(
                "quorum.peers is empty", hint="name the address of at least one controller"
            )
        if self.lifecycle.heartbeat_ms * 3 > self.lifecycle.session_ms:
            raise ConfigError(
                f"broker.heartbeat.interval.ms = {self.lifecycle.heartbeat_ms} is more than a third"
                f" of broker.session.timeout.ms = {self.lifecycle.session_ms}",
                hint="two lost heartbeats must not end a session",
            )

    @property
    def has_own_metadata_dir(self) -> bool:
        """Whether the metadata log lives apart from the partitions."""
        paths = {os.path.abspath(path) for path in self.log_dirs}
        return os.path.abspath(self.metadata_dir) not in paths

    def endpoint(self, port: int) -> str:
        """What we tell others; `port` is the one that the system gave us."""
        if self.advertise is not None:
            return self.advertise
        return f"{self.listen.rpartition(':')[0]}:{port}"


def broker_config(config: Config) -> BrokerConfig:
    log_dirs = config[keys.LOG_DIRS]
    if not log_dirs:
        raise ConfigError("log.dirs is empty", hint="name at least one directory")
    node_id = config[keys.NODE_ID]
    profile = PROFILES[config[keys.TIMING_PROFILE]]
    return BrokerConfig(
        static=config,
        log_dirs=log_dirs,
        metadata_dir=config[broker_keys.METADATA_LOG_DIR] or log_dirs[0],
        node_id=None if node_id == keys.NODE_ID.default else node_id,
        cluster_id=_cluster_id(config),
        listen=config[broker_keys.BROKER_LISTENERS],
        advertise=_first(config[broker_keys.BROKER_ADVERTISED_LISTENERS]),
        peers=config[keys.QUORUM_PEERS],
        rack=config[broker_keys.BROKER_RACK],
        lifecycle=LifecycleTiming(
            heartbeat_ms=_pick(
                config, broker_keys.BROKER_HEARTBEAT_INTERVAL_MS, profile.heartbeat_ms
            ),
            session_ms=_pick(config, controller_keys.BROKER_SESSION_TIMEOUT_MS, profile.session_ms),
            registration_ms=_pick(
                config,
                broker_keys.INITIAL_BROKER_REGISTRATION_TIMEOUT_MS,
                profile.registration_ms,
            ),
        ),
        shutdown_ms=_pick(config, broker_keys.CONTROLLED_SHUTDOWN_TIMEOUT_MS, profile.shutdown_ms),
        replica=_replica_settings(config, profile),
        auto_create=config[broker_keys.AUTO_CREATE_TOPICS_ENABLE],
        slow_request_ms=config[broker_keys.SLOW_REQUEST_LOG_MS],
        metrics=_first(config[keys.METRICS_LISTENERS]),
    )


def _replica_settings(config: Config, profile: Profile) -> ReplicaSettings:
    timeout_ms = _pick(config, broker_keys.REPLICA_SOCKET_TIMEOUT_MS, profile.fetch_timeout_ms)
    wait_ms = _pick(config, broker_keys.REPLICA_FETCH_WAIT_MAX_MS, profile.fetch_wait_ms)
    if wait_ms > min(FETCH_WAIT_MS_MAX, timeout_ms // 4):
        raise ConfigError(
            f"replica.fetch.wait.max.ms = {wait_ms} with replica.socket.timeout.ms = {timeout_ms}",
            hint=f"a fetch waits at most {FETCH_WAIT_MS_MAX} ms, and a quarter of the time-out",
        )
    return ReplicaSettings(
        replica_lag_ms=_pick(config, broker_keys.REPLICA_LAG_TIME_MAX_MS, profile.replica_lag_ms),
        fetch_wait_ms=wait_ms,
        fetch_timeout_ms=timeout_ms,
        fetch_partition_bytes=config[broker_keys.REPLICA_FETCH_MAX_BYTES],
        fetch_backoff_ms=config[broker_keys.REPLICA_FETCH_BACKOFF_MS],
        sessions_max=config[broker_keys.FETCH_SESSION_SLOTS],
        checkpoint_ms=config[broker_keys.REPLICA_CHECKPOINT_INTERVAL_MS],
        retention_check_ms=config[broker_keys.LOG_RETENTION_CHECK_INTERVAL_MS],
        cleaner_backoff_ms=config[broker_keys.LOG_CLEANER_BACKOFF_MS],
    )


def _pick(config: Config, key: Key[int], of_profile: int) -> int:
    """A time: the profile's, unless it is set by itself."""
    return of_profile if config.source(key) == DEFAULT_SOURCE else config[key]


def _first(addresses: tuple[str, ...]) -> str | None:
    return addresses[0] if addresses else None


def _cluster_id(config: Config) -> str | None:
    text = config[broker_keys.CLUSTER_ID]
    if text is None:
        return None
    try:
        return str(Uuid.parse(text))
    except ValueError as error:
        raise ConfigError(f"cluster.id: {error}", hint="it is what `form` printed") from None
