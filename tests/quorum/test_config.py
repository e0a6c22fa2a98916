import pytest

from kraftlog.config import load
from kraftlog.config_keys import Scope
from kraftlog.errors import ConfigError
from quorum.config import ServerConfig, server_config
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
