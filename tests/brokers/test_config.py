from collections.abc import Callable

import pytest

from brokers.config import BrokerConfig, broker_config
from kraftlog.broker_keys import BROKER_KEYS
from kraftlog.config_key import Scope
from kraftlog.errors import ConfigError
from kraftlog.types import Uuid
from tests.brokers.views import static


def config(**flags: str) -> BrokerConfig:
    given = {"log_dirs": "/a,/b", "quorum_peers": "c1:9093,c2:9093"} | flags
    return broker_config(static(**given))


def test_kafka_s_defaults() -> None:
    plain = config()
    assert (plain.lifecycle.heartbeat_ms, plain.lifecycle.session_ms) == (2_000, 9_000)
    assert plain.lifecycle.request_ms == 2_250
    assert plain.replica.replica_lag_ms == 30_000
    assert (plain.replica.fetch_wait_ms, plain.replica.fetch_timeout_ms) == (500, 2_000)
    assert plain.auto_create
    assert plain.node_id is None
    assert plain.peers == ("c1:9093", "c2:9093")


def test_the_fast_profile() -> None:
    fast = config(timing_profile="fast")
    assert (fast.lifecycle.heartbeat_ms, fast.lifecycle.session_ms) == (150, 1_500)
    assert fast.replica.replica_lag_ms == 2_000
    assert (fast.replica.fetch_wait_ms, fast.replica.fetch_timeout_ms) == (500, 2_000)


def test_what_is_set_wins_over_the_profile() -> None:
    mixed = config(timing_profile="fast", broker_session_timeout_ms="3s", broker_rack="r1")
    assert (mixed.lifecycle.heartbeat_ms, mixed.lifecycle.session_ms) == (150, 3_000)
    assert mixed.rack == "r1"


def test_where_the_metadata_log_lives() -> None:
    assert config().metadata_dir == "/a"
    assert not config().has_own_metadata_dir
    assert not config(metadata_log_dir="/b/").has_own_metadata_dir
    assert config(metadata_log_dir="/c").has_own_metadata_dir


def test_what_others_are_told() -> None:
    assert config(listeners="127.0.0.1:0").endpoint(5) == "127.0.0.1:5"
    assert config(listeners="[::1]:0").endpoint(5) == "[::1]:5"
    told = config(listeners="0.0.0.0:9092", advertised_listeners="b1.example:9092")
    assert told.endpoint(9092) == "b1.example:9092"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"listeners": "0.0.0.0:9092"}, "every address of this machine"),
        ({"node_id": "0"}, "node ids begin at 1"),
        ({"quorum_peers": "none"}, "at least one controller"),
        ({"broker_heartbeat_interval_ms": "4s"}, "two lost heartbeats"),
        ({"replica_fetch_wait_max_ms": "501"}, "a quarter of the time-out"),
        ({"replica_socket_timeout_ms": "1s"}, "a quarter of the time-out"),
        ({"cluster_id": "short"}, "it is what `form` printed"),
    ],
)
def test_what_cannot_work_is_refused(flags: dict[str, str], words: str) -> None:
    if "replica_socket_timeout_ms" in flags:
        flags = flags | {"replica_fetch_wait_max_ms": "400"}
    with pytest.raises(ConfigError, match=words):
        config(**flags)


def test_directories_have_to_be_named() -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs is empty"):
        broker_config(static(quorum_peers="c1:9093"))


def test_a_cluster_id_is_a_uuid() -> None:
    text = str(Uuid(b"c" * 16))
    assert config(cluster_id=text).cluster_id == text
    assert config().cluster_id is None


# Of each key a value that is not the default, and where it arrives. What becomes of it there is
# shown where that lives. The rates of the replication throttle are read with the metadata, and so
# is what a broker says for all topics (test_topic_settings).
ARRIVES: dict[str, tuple[str, Callable[[BrokerConfig], object], object]] = {
    "listeners": ("h:1", lambda c: c.listen, "h:1"),
    "advertised.listeners": ("h:2", lambda c: c.advertise, "h:2"),
    "broker.rack": ("r9", lambda c: c.rack, "r9"),
    "cluster.id": (str(Uuid(b"c" * 16)), lambda c: c.cluster_id, str(Uuid(b"c" * 16))),
    "metadata.log.dir": ("/m", lambda c: c.metadata_dir, "/m"),
    "broker.heartbeat.interval.ms": ("17", lambda c: c.lifecycle.heartbeat_ms, 17),
    "initial.broker.registration.timeout.ms": ("18", lambda c: c.lifecycle.registration_ms, 18),
    "controlled.shutdown.timeout.ms": ("19", lambda c: c.shutdown_ms, 19),
    "replica.lag.time.max.ms": ("20", lambda c: c.replica.replica_lag_ms, 20),
    "replica.fetch.wait.max.ms": ("21", lambda c: c.replica.fetch_wait_ms, 21),
    "replica.socket.timeout.ms": ("2022", lambda c: c.replica.fetch_timeout_ms, 2022),
    "replica.fetch.max.bytes": ("23", lambda c: c.replica.fetch_partition_bytes, 23),
    "replica.fetch.backoff.ms": ("24", lambda c: c.replica.fetch_backoff_ms, 24),
    "replica.high.watermark.checkpoint.interval.ms": ("25", lambda c: c.replica.checkpoint_ms, 25),
    "max.incremental.fetch.session.cache.slots": ("26", lambda c: c.replica.sessions_max, 26),
    "log.retention.check.interval.ms": ("27", lambda c: c.replica.retention_check_ms, 27),
    "log.cleaner.backoff.ms": ("28", lambda c: c.replica.cleaner_backoff_ms, 28),
    "auto.create.topics.enable": ("false", lambda c: c.auto_create, False),
    "slow.request.log.ms": ("29", lambda c: c.slow_request_ms, 29),
}
OF_THE_METADATA = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
}


def test_every_key_of_a_broker_arrives() -> None:
    assert {key.names[Scope.BROKER] for key in BROKER_KEYS} == ARRIVES.keys() | OF_THE_METADATA
    plain = config()
    for name, (text, read, value) in ARRIVES.items():
        assert read(plain) != value, name
        assert read(config(**{name.replace(".", "_"): text})) == value, name
