"""Configs as people ask for them."""

import pytest

from kraftlog.config import load
from kraftlog.config_keys import ALL_KEYS, Scope
from kraftlog.errors import UnknownTopicOrPartition
from kraftlog.types import Uuid
from metadata_log.described import describe_configs
from metadata_log.effective import ALL_BROKERS
from metadata_log.image import EMPTY, Image
from metadata_log.records import ConfigRecord, Record, Resource, ResourceType, TopicRecord
from metadata_log.replay import replay_all

TOPIC = Resource(ResourceType.TOPIC, "t")
BROKER = Resource(ResourceType.BROKER, "1")


def image() -> Image:
    records: list[Record] = [
        TopicRecord("t", Uuid(b"x" * 16)),
        ConfigRecord(TOPIC, "retention.ms", "10"),
        ConfigRecord(ALL_BROKERS, "log.segment.bytes", "2000"),
        ConfigRecord(ALL_BROKERS, "log.retention.ms", "30"),
        ConfigRecord(BROKER, "log.retention.ms", "40"),
    ]
    return replay_all(EMPTY, records, 0)


def test_a_topic_has_every_key_of_topics_with_its_source() -> None:
    static = load(Scope.BROKER, flags={"log.roll.ms": "5000"})
    found = {each.name: each for each in describe_configs(image(), TOPIC, static=static)}
    assert set(found) == {key.names[Scope.TOPIC] for key in ALL_KEYS if Scope.TOPIC in key.names}
    assert (found["retention.ms"].value, found["retention.ms"].source) == ("10", "topic")
    assert (found["segment.bytes"].value, found["segment.bytes"].source) == ("2000", "cluster")
    assert (found["segment.ms"].value, found["segment.ms"].source) == ("5000", "static")
    assert found["cleanup.policy"].source == "default"


def test_a_broker_has_what_is_set_while_it_runs() -> None:
    found = {each.name: each for each in describe_configs(image(), BROKER)}
    assert (found["log.retention.ms"].value, found["log.retention.ms"].source) == ("40", "broker")
    assert found["log.segment.bytes"].source == "cluster"
    of_all = describe_configs(image(), ALL_BROKERS)
    assert [each.source for each in of_all] == ["cluster", "cluster"]


def test_a_topic_that_is_not_there_has_no_configs() -> None:
    with pytest.raises(UnknownTopicOrPartition, match="nowhere"):
        describe_configs(image(), Resource(ResourceType.TOPIC, "nowhere"))
