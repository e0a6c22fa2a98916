from kraftlog.broker_keys import BROKER_KEYS
from kraftlog.config_keys import ALL_KEYS, Scope

KAFKA_KEYS = {
    "broker.rack": "none",
    "broker.heartbeat.interval.ms": "2000",
    "initial.broker.registration.timeout.ms": "60000",
    "replica.lag.time.max.ms": "30000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.max.bytes": "1048576",
    "replica.fetch.backoff.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
    "max.incremental.fetch.session.cache.slots": "1000",
    "log.retention.check.interval.ms": "300000",
    "log.cleaner.backoff.ms": "15000",
    "leader.replication.throttled.rate": str(2**63 - 1),
    "follower.replication.throttled.rate": str(2**63 - 1),
    "auto.create.topics.enable": "true",
    "metadata.log.dir": "none",
}
# Kafka has other names or other values for these.
OUR_KEYS = {
    "listeners": "127.0.0.1:9092",
    "advertised.listeners": "none",
    "cluster.id": "none",
    "controlled.shutdown.timeout.ms": "300000",
    "slow.request.log.ms": "1000",
    "replica.socket.timeout.ms": "2000",
}


def test_names_and_defaults_are_those_of_kafka() -> None:
    assert {key.name: key.default_text for key in BROKER_KEYS} == KAFKA_KEYS | OUR_KEYS


def test_every_key_can_be_set_for_a_broker_and_is_in_the_list_of_all() -> None:
    for key in BROKER_KEYS:
        assert Scope.BROKER in key.names
        assert key in ALL_KEYS
