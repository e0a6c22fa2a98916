"""What a controller process is told, from Kafka's dotted keys (`kraftlog.config_keys`).

Flags win over the environment, that over a file, that over the timing profile, that over Kafka's
defaults.
"""

from dataclasses import dataclass, field

from kraftlog import config_keys as keys
from kraftlog import controller_keys
from kraftlog.config import DEFAULT_SOURCE, Config
from kraftlog.config_keys import Key, Scope
from kraftlog.errors import ConfigError
from quorum.core.config import FAST, KAFKA, Timing
from quorum.sessions import WatchTiming
from quorum.snapshots import SnapshotPolicy
from storage.log_config import LogConfig

PROFILES = {"kafka": KAFKA, "fast": FAST}
FAST_SESSION_MS = 1_500

_WILDCARDS = ("0.0.0.0", "[::]")  # noqa: S104 - to be refused as an address for others


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One controller process."""

    directory: str
    node_id: int | None = None
    """None: what the directory says."""
    listen: str = keys.CONTROLLER_LISTENERS.default
    advertise: str | None = None
    """Where others reach us. None: where we listen."""
    peers: tuple[str, ...] = ()
    timing: Timing = KAFKA
    log: LogConfig = field(default_factory=LogConfig)
    snapshots: SnapshotPolicy = field(default_factory=SnapshotPolicy)
    metrics: str | None = None
    keeps_journal: bool = False
    """The quorum stands alone and keeps any records; else the metadata of a cluster."""
    settings: Config = field(default_factory=lambda: Config(Scope.CONTROLLER, {}))
    """All of it, for the controller of a cluster."""

    def __post_init__(self) -> None:
        if self.node_id is not None and self.node_id < 1:
            raise ConfigError(f"node.id = {self.node_id}", hint="node ids begin at 1")
        if self.advertise is None and self.listen.rpartition(":")[0] in _WILDCARDS:
            raise ConfigError(
                f"listeners = {self.listen} is every address of this machine, and others cannot"
                " dial that",
                hint="say with advertised.listeners where they reach it",
            )

    def endpoint(self, port: int) -> str:
        """What we tell others; `port` is the one that the system gave us."""
        if self.advertise is not None:
            return self.advertise
        return f"{self.listen.rpartition(':')[0]}:{port}"


def server_config(config: Config) -> ServerConfig:
    directories = config[keys.LOG_DIRS]
    if len(directories) != 1:
        raise ConfigError(
            f"log.dirs names {len(directories)} directories",
            hint="a controller has one: give it with --directory",
        )
    node_id = config[keys.NODE_ID]
    return ServerConfig(
        directory=directories[0],
        node_id=None if node_id == keys.NODE_ID.default else node_id,
        listen=config[keys.CONTROLLER_LISTENERS],
        advertise=_first(config[keys.CONTROLLER_ADVERTISED_LISTENERS]),
        peers=config[keys.QUORUM_PEERS],
        timing=timing(config),
        log=metadata_log(config),
        snapshots=snapshot_policy(config),
        metrics=_first(config[keys.METRICS_LISTENERS]),
        keeps_journal=config[controller_keys.QUORUM_STATE] == "journal",
        settings=config,
    )


def _first(addresses: tuple[str, ...]) -> str | None:
    return addresses[0] if addresses else None


def timing(config: Config) -> Timing:
    """The profile's times, but for those that are set by themselves."""
    profile = PROFILES[config[keys.TIMING_PROFILE]]

    def pick(key: Key[int], of_profile: int) -> int:
        return of_profile if config.source(key) == DEFAULT_SOURCE else config[key]

    return Timing(
        fetch_timeout_ms=pick(keys.QUORUM_FETCH_TIMEOUT_MS, profile.fetch_timeout_ms),
        election_timeout_ms=pick(keys.QUORUM_ELECTION_TIMEOUT_MS, profile.election_timeout_ms),
        election_backoff_max_ms=pick(
            keys.QUORUM_ELECTION_BACKOFF_MAX_MS, profile.election_backoff_max_ms
        ),
        request_timeout_ms=pick(keys.QUORUM_REQUEST_TIMEOUT_MS, profile.request_timeout_ms),
        retry_backoff_ms=pick(keys.QUORUM_RETRY_BACKOFF_MS, profile.retry_backoff_ms),
    )


def watch_timing(config: Config) -> WatchTiming:
    """How long brokers may be silent or lag; by default they may lag for three sessions."""
    is_fast = config[keys.TIMING_PROFILE] == "fast"
    session_ms = config[controller_keys.BROKER_SESSION_TIMEOUT_MS]
    if is_fast and config.source(controller_keys.BROKER_SESSION_TIMEOUT_MS) == DEFAULT_SOURCE:
        session_ms = FAST_SESSION_MS
    lag_ms = 3 * session_ms
    if config.source(controller_keys.METADATA_LAG_MAX_MS) != DEFAULT_SOURCE:
        lag_ms = config[controller_keys.METADATA_LAG_MAX_MS]
    moves_back = config[controller_keys.AUTO_LEADER_REBALANCE_ENABLE]
    interval_ms = 1_000 * config[controller_keys.LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS]
    return WatchTiming(
        session_ms=session_ms, lag_ms=lag_ms, rebalance_ms=interval_ms if moves_back else None
    )


def metadata_log(config: Config) -> LogConfig:
    """Nothing is deleted by the log engine: the log begins where a snapshot ends."""
    return LogConfig(
        segment_bytes=config[keys.METADATA_SEGMENT_BYTES],
        segment_ms=config[keys.METADATA_SEGMENT_MS],
        delete=False,
    )


def snapshot_policy(config: Config) -> SnapshotPolicy:
    return SnapshotPolicy(
        log_bytes=config[keys.METADATA_SNAPSHOT_BYTES],
        interval_ms=config[keys.METADATA_SNAPSHOT_INTERVAL_MS],
        retention_bytes=config[keys.METADATA_RETENTION_BYTES],
        retention_ms=config[keys.METADATA_RETENTION_MS],
    )
