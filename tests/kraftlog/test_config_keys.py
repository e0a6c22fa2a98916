import re

import pytest

from kraftlog import config_keys as keys
from kraftlog.broker_keys import BROKER_KEYS
from kraftlog.client_keys import CLIENT_KEYS
from kraftlog.config_keys import ALL_KEYS, Key, Scope

# Kafka's own defaults and the names of a broker's defaults for its topics, written down once more.
KAFKA_TOPIC_KEYS: dict[str, tuple[str, str]] = {
    "segment.bytes": ("log.segment.bytes", "1073741824"),
    "segment.ms": ("log.roll.ms", "604800000"),
    "index.interval.bytes": ("log.index.interval.bytes", "4096"),
    "segment.index.bytes": ("log.index.size.max.bytes", "10485760"),
    "cleanup.policy": ("log.cleanup.policy", "delete"),
    "retention.ms": ("log.retention.ms", "604800000"),
    "retention.bytes": ("log.retention.bytes", "-1"),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms", "60000"),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio", "0.5"),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms", "0"),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms", "9223372036854775807"),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms", "86400000"),
    "max.message.bytes": ("message.max.bytes", "1048588"),
    "message.timestamp.type": ("log.message.timestamp.type", "CreateTime"),
    "message.timestamp.before.max.ms": (
        "log.message.timestamp.before.max.ms",
        "9223372036854775807",
    ),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms", "3600000"),
    "min.insync.replicas": ("min.insync.replicas", "1"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable", "false"),
    "flush.before.ack": ("log.flush.before.ack", "false"),  # ours, for a promise that Kafka lacks
    "leader.replication.throttled.replicas": ("", "none"),
    "follower.replication.throttled.replicas": ("", "none"),
}
KAFKA_BROKER_KEYS: dict[str, str] = {
    "producer.id.expiration.ms": "86400000",
    "log.dirs": "none",
    "log.cleaner.enable": "true",
    "log.cleaner.dedupe.buffer.size": "134217728",
    "log.cleaner.io.max.bytes.per.second": "1.7976931348623157e+308",
    "node.id": "-1",
    "num.partitions": "1",
    "default.replication.factor": "1",
}
# Of controllers, and of brokers as observers of their log.
KAFKA_QUORUM_KEYS: dict[str, str] = {
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.request.timeout.ms": "2000",
    "controller.quorum.retry.backoff.ms": "20",
    "metadata.log.segment.bytes": "1073741824",
    "metadata.log.segment.ms": "604800000",
    "metadata.log.max.record.bytes.between.snapshots": "20971520",
    "metadata.log.max.snapshot.interval.ms": "3600000",
    "metadata.max.retention.bytes": "104857600",
    "metadata.max.retention.ms": "604800000",
    "broker.session.timeout.ms": "9000",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "300",
}
# Kafka has other names or other values for these.
OUR_KEYS: dict[str, str] = {
    "listeners": "127.0.0.1:9093",
    "advertised.listeners": "none",
    "metrics.listeners": "none",
    "timing.profile": "kafka",
    "quorum.peers": "none",
    "metadata.lag.max.ms": "27000",
    "quorum.state": "metadata",
}


def test_names_and_defaults_are_those_of_kafka() -> None:
    of_topics = {
        key.names[Scope.TOPIC]: (key.names.get(Scope.BROKER, ""), key.default_text)
        for key in ALL_KEYS
        if Scope.TOPIC in key.names
    }
    others = {
        key.name: key.default_text
        for key in ALL_KEYS
        if Scope.TOPIC not in key.names and key not in (*BROKER_KEYS, *CLIENT_KEYS)
    }
    assert of_topics == KAFKA_TOPIC_KEYS
    assert others == KAFKA_BROKER_KEYS | KAFKA_QUORUM_KEYS | OUR_KEYS


@pytest.mark.parametrize("key", ALL_KEYS, ids=lambda key: key.name)
def test_each_declaration_is_whole(key: Key[object]) -> None:
    assert key.doc.endswith(".")
    assert key.value_type.describe()
    for name in key.names.values():
        assert re.fullmatch(r"[a-z]+(\.[a-z]+)*", name)
    if key is not keys.LOG_DIRS:  # it has none on purpose: nobody guesses where data should go
        assert key.parse(key.default_text) == key.default
        key.check(key.default, name="x")


def test_no_name_means_two_things() -> None:
    for scope in Scope:
        names = [key.names[scope] for key in ALL_KEYS if scope in key.names]
        assert len(names) == len(set(names))
