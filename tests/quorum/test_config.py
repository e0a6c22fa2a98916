from collections.abc import Callable

import pytest

from kraftlog.config import load
from kraftlog.config_keys import ALL_KEYS, Scope
from kraftlog.errors import ConfigError
from quorum.config import ServerConfig, server_config, watch_timing
from quorum.core.config import FAST, KAFKA, Timing


def read(**flags: object) -> ServerConfig:
    named = {name.replace("_", "."): value for name, value in flags.items()}
    return server_config(load(Scope.CONTROLLER, flags={"log.dirs": "/data", **named}))


def test_the_defaults_are_kafkas() -> None:
    config = read()
    assert config.timing == KAFKA == Timing()
    assert config.node_id is None
    assert config.peers == ()
    assert config.metrics is None
    assert config.log.segment_bytes == 1 << 30
    assert not config.log.delete  # snapshots decide where the log begins
    assert config.snapshots.log_bytes == 20 << 20
    assert config.snapshots.retention_bytes == 100 << 20


def test_a_profile_is_the_default_of_its_keys() -> None:
    assert read(timing_profile="fast").timing == FAST
    mixed = read(timing_profile="fast", controller_quorum_fetch_timeout_ms="500").timing
    assert mixed.fetch_timeout_ms == 500
    assert mixed.election_timeout_ms == FAST.election_timeout_ms
    assert mixed.fetch_wait_ms == 125


def test_a_wait_that_outlives_its_request_is_refused() -> None:
    with pytest.raises(ConfigError, match="every idle fetch counts as lost"):
        read(controller_quorum_request_timeout_ms="400")


def test_all_keys_of_a_server() -> None:
    config = read(
        node_id=101,
        listeners="0.0.0.0:9093",
        advertised_listeners="c1.example:9093",
        quorum_peers="c2:9093,c3:9093",
        metrics_listeners="127.0.0.1:0",
        metadata_max_retention_ms="1h",
    )
    assert config.node_id == 101
    assert config.endpoint(9093) == "c1.example:9093"
    assert config.peers == ("c2:9093", "c3:9093")
    assert config.metrics == "127.0.0.1:0"
    assert config.snapshots.retention_ms == 3_600_000


def test_the_port_that_the_system_chose_is_told() -> None:
    assert read(listeners="127.0.0.1:0").endpoint(4711) == "127.0.0.1:4711"
    assert read(listeners="[::1]:0").endpoint(4711) == "[::1]:4711"


def test_what_others_could_not_dial_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"advertised\.listeners"):
        read(listeners="0.0.0.0:9093")


@pytest.mark.parametrize("directories", ["/a,/b", None])
def test_a_controller_has_one_directory(directories: str | None) -> None:
    flags = {"log.dirs": directories} if directories else {}
    with pytest.raises(ConfigError, match="a controller has one"):
        server_config(load(Scope.CONTROLLER, flags=flags))


@pytest.mark.parametrize("node_id", [0, -7, "x", 2**31])
def test_node_ids_begin_at_1(node_id: object) -> None:
    with pytest.raises(ConfigError, match=r"node\.id"):
        read(node_id=node_id)


# Of each key a value that is not the default, and where it arrives. What becomes of it there is
# shown where that lives.
ARRIVES: dict[str, tuple[str, Callable[[ServerConfig], object], object]] = {
    "node.id": ("7", lambda c: c.node_id, 7),
    "log.dirs": ("/other", lambda c: c.directory, "/other"),
    "listeners": ("h:1", lambda c: c.listen, "h:1"),
    "advertised.listeners": ("h:2", lambda c: c.advertise, "h:2"),
    "metrics.listeners": ("h:3", lambda c: c.metrics, "h:3"),
    "quorum.peers": ("h:4", lambda c: c.peers, ("h:4",)),
    "timing.profile": ("fast", lambda c: c.timing, FAST),
    "quorum.state": ("journal", lambda c: c.keeps_journal, True),
    "controller.quorum.fetch.timeout.ms": ("1811", lambda c: c.timing.fetch_timeout_ms, 1811),
    "controller.quorum.election.timeout.ms": ("12", lambda c: c.timing.election_timeout_ms, 12),
    "controller.quorum.election.backoff.max.ms": (
        "13",
        lambda c: c.timing.election_backoff_max_ms,
        13,
    ),
    "controller.quorum.request.timeout.ms": ("1914", lambda c: c.timing.request_timeout_ms, 1914),
    "controller.quorum.retry.backoff.ms": ("15", lambda c: c.timing.retry_backoff_ms, 15),
    "metadata.log.segment.bytes": ("1016", lambda c: c.log.segment_bytes, 1016),
    "metadata.log.segment.ms": ("17", lambda c: c.log.segment_ms, 17),
    "metadata.log.max.record.bytes.between.snapshots": ("18", lambda c: c.snapshots.log_bytes, 18),
    "metadata.log.max.snapshot.interval.ms": ("19", lambda c: c.snapshots.interval_ms, 19),
    "metadata.max.retention.bytes": ("20", lambda c: c.snapshots.retention_bytes, 20),
    "metadata.max.retention.ms": ("21", lambda c: c.snapshots.retention_ms, 21),
    "broker.session.timeout.ms": ("22", lambda c: watch_timing(c.settings).session_ms, 22),
    "metadata.lag.max.ms": ("23", lambda c: watch_timing(c.settings).lag_ms, 23),
    "auto.leader.rebalance.enable": (
        "false",
        lambda c: watch_timing(c.settings).rebalance_ms,
        None,
    ),
    "leader.imbalance.check.interval.seconds": (
        "25",
        lambda c: watch_timing(c.settings).rebalance_ms,
        25_000,
    ),
}
# What topics and their partitions are created with is read with the metadata
# (tests/metadata_log/test_effective, decide/test_topics).
OF_THE_METADATA = {
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "log.flush.before.ack",
    "num.partitions",
    "default.replication.factor",
}


def test_every_key_of_a_controller_arrives() -> None:
    named = {key.names[Scope.CONTROLLER] for key in ALL_KEYS if Scope.CONTROLLER in key.names}
    assert named == ARRIVES.keys() | OF_THE_METADATA
    plain = read()
    for name, (text, arrives, value) in ARRIVES.items():
        assert arrives(plain) != value, name
        assert arrives(read(**{name.replace(".", "_"): text})) == value, name


def test_a_broker_may_lag_for_three_sessions() -> None:
    assert watch_timing(read(broker_session_timeout_ms="5s").settings).lag_ms == 15_000
    assert watch_timing(read(timing_profile="fast").settings).lag_ms == 4_500
