import pytest

from kraftlog.config_keys import ALL_KEYS, Scope
from kraftlog.errors import ConfigError
from metadata_log.config_check import check_broker_config, check_topic_config, members


def test_defaults_of_all_keys_fit_together() -> None:
    of_topics = [key for key in ALL_KEYS if Scope.TOPIC in key.names]
    check_topic_config({key.names[Scope.TOPIC]: key.default_text for key in of_topics})
    check_broker_config(
        {
            key.names[Scope.BROKER]: key.default_text
            for key in of_topics
            if Scope.BROKER in key.names
        }
    )


@pytest.mark.parametrize(
    "values",
    [
        {"retention.ms": "x"},
        {"no.such.key": "1"},
        {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
        {"log.retention.ms": "1"},
    ],
)
def test_what_a_topic_cannot_have(values: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        check_topic_config(values)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"log.retention.ms": "x"}, "must be whole milliseconds"),
        ({"retention.ms": "1"}, "not a configuration key of a broker"),
        ({"node.id": "7"}, "read once, when a broker starts"),
        (
            {
                "log.cleaner.min.compaction.lag.ms": "2",
                "log.cleaner.max.compaction.lag.ms": "1",
            },
            "is above",
        ),
    ],
)
def test_what_brokers_cannot_be_told_while_they_run(values: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_broker_config(values)


def test_one_broker_may_be_told_alone_what_it_reads_alone() -> None:
    check_broker_config({"leader.replication.throttled.rate": "1"}, of_one=True)
    for name in ("log.retention.ms", "min.insync.replicas"):
        check_broker_config({name: "1"})
        with pytest.raises(ConfigError, match="cannot differ") as refused:
            check_broker_config({name: "1"}, of_one=True)
        assert refused.value.hint == "set it for all brokers"
    with pytest.raises(ConfigError, match="read once"):
        check_broker_config({"node.id": "7"}, of_one=True)


def test_members_of_lists() -> None:
    assert members(Scope.TOPIC, "cleanup.policy", None) == ["delete"]
    assert members(Scope.BROKER, "log.cleanup.policy", "compact,delete") == ["compact", "delete"]
    assert members(Scope.TOPIC, "leader.replication.throttled.replicas", None) == []
    assert members(Scope.TOPIC, "retention.ms", "5") is None
    assert members(Scope.TOPIC, "no.such.key", None) is None
