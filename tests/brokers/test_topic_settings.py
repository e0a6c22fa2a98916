import pytest

from brokers.topic_settings import SettingsBook
from metadata_log.records import ConfigRecord, Resource, ResourceType
from metadata_log.replay import replay_all
from tests.brokers.images import broker_config, image_of, topic, topic_config
from tests.brokers.views import static


def test_a_topic_s_own_value_wins_then_that_of_all_brokers_then_ours() -> None:
    book = SettingsBook(static(log_segment_bytes="1000", log_retention_ms="5"))
    image = image_of(
        topic("a", [1]),
        topic("b", [1]),
        topic_config("a", {"segment.bytes": "3000", "flush.before.ack": "true"}),
        broker_config({"log.segment.bytes": "2000"}),
    )
    own, plain = book.settings(image, "a"), book.settings(image, "b")
    assert (own.log.segment_bytes, plain.log.segment_bytes) == (3000, 2000)
    assert own.log.retention_ms == plain.log.retention_ms == 5
    assert (own.flush_before_ack, plain.flush_before_ack) == (True, False)


def test_min_insync_replicas_never_comes_from_our_own_configuration() -> None:
    book = SettingsBook(static(min_insync_replicas="3"))
    image = image_of(topic("a", [1]), topic("b", [1]))
    assert book.settings(image, "a").min_insync_replicas == 1
    for_all = image_of(broker_config({"min.insync.replicas": "2"}), before=image)
    assert book.settings(for_all, "a").min_insync_replicas == 2
    for_one = image_of(topic_config("b", {"min.insync.replicas": "4"}), before=for_all)
    assert book.settings(for_one, "b").min_insync_replicas == 4


def test_what_did_not_change_is_the_same_object() -> None:
    book = SettingsBook(static())
    image = image_of(topic("a", [1]), topic("b", [1]), topic_config("a", {"segment.bytes": "999"}))
    later = image_of(topic("c", [1]), before=image)
    assert book.settings(image, "a") is book.settings(later, "a")
    assert book.settings(image, "b") is book.settings(later, "c")
    changed = image_of(topic_config("a", {"segment.bytes": "998"}), before=later)
    assert book.settings(changed, "a").log.segment_bytes == 998
    for_all = image_of(broker_config({"log.retention.ms": "7"}), before=changed)
    assert book.settings(for_all, "a").log.retention_ms == 7
    assert book.settings(for_all, "b").log.retention_ms == 7
    book.forget("a")
    assert book.settings(for_all, "a").log.segment_bytes == 998


def test_a_config_of_a_newer_controller_does_not_stop_a_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    resource = Resource(ResourceType.TOPIC, "a")
    image = replay_all(
        image_of(topic("a", [1])),
        [
            ConfigRecord(resource, "from.the.future", "1"),
            ConfigRecord(resource, "segment.bytes", "4000"),
        ],
        2,
    )
    book = SettingsBook(static())
    assert book.settings(image, "a").log.segment_bytes == 4000
    assert book.refused == 1
    assert "from.the.future" in caplog.text


def test_values_that_do_not_go_together_leave_the_defaults(
    caplog: pytest.LogCaptureFixture,
) -> None:
    book = SettingsBook(static(log_cleaner_min_compaction_lag_ms="100"))
    image = image_of(topic("a", [1]), topic_config("a", {"max.compaction.lag.ms": "50"}))
    assert book.settings(image, "a").log.min_compaction_lag_ms == 100
    assert book.refused == 1
    assert "topic a keeps the defaults" in caplog.text
