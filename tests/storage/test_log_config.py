import re
from dataclasses import fields, replace

import pytest

from kraftlog.config import load, topic_config
from kraftlog.config_keys import Scope
from kraftlog.errors import ConfigError, InvalidTimestamp
from kraftlog.record_batch import Timestamps
from kraftlog.types import NO_TIMESTAMP, TimestampType
from storage.log_config import FOREVER_MS, UNLIMITED, LogConfig


def test_the_defaults_are_those_of_an_empty_configuration() -> None:
    assert LogConfig.from_config(topic_config({})) == LogConfig()
    assert LogConfig.from_config(load(Scope.BROKER)) == LogConfig()
    assert LogConfig().max_compaction_lag_ms == FOREVER_MS
    assert LogConfig().retention_bytes == UNLIMITED
    assert (LogConfig().compact, LogConfig().delete) == (False, True)


def test_every_field_is_read() -> None:
    broker = load(Scope.BROKER, flags={"producer.id.expiration.ms": 16})
    overrides = {
        "segment.bytes": 101,
        "segment.ms": 102,
        "index.interval.bytes": 103,
        "segment.index.bytes": 104,
        "retention.ms": 105,
        "retention.bytes": 106,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": 0.25,
        "min.compaction.lag.ms": 107,
        "max.compaction.lag.ms": 108,
        "delete.retention.ms": 109,
        "file.delete.delay.ms": 110,
        "max.message.bytes": 111,
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": 112,
        "message.timestamp.after.max.ms": 113,
    }
    config = LogConfig.from_config(topic_config(overrides, broker=broker))
    assert config == LogConfig(
        segment_bytes=101,
        segment_ms=102,
        index_interval_bytes=103,
        index_bytes_max=104,
        retention_ms=105,
        retention_bytes=106,
        compact=True,
        delete=False,
        min_cleanable_dirty_ratio=0.25,
        min_compaction_lag_ms=107,
        max_compaction_lag_ms=108,
        delete_retention_ms=109,
        file_delete_delay_ms=110,
        max_message_bytes=111,
        timestamp_type=TimestampType.APPEND,
        timestamp_before_max_ms=112,
        timestamp_after_max_ms=113,
        producer_id_expiration_ms=16,
    )
    changed = {each.name for each in fields(config)}
    same = {name for name in changed if getattr(config, name) == getattr(LogConfig(), name)}
    assert not same


def test_both_policies() -> None:  # R30
    config = LogConfig.from_config(topic_config({"cleanup.policy": "compact,delete"}))
    assert config.compact
    assert config.delete


def test_values_given_directly_are_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"LogConfig\.segment_bytes = 13 must be"):
        LogConfig(segment_bytes=13)
    with pytest.raises(ConfigError, match=r"LogConfig\.retention_ms = -2 must be"):
        LogConfig(retention_ms=-2)
    with pytest.raises(ConfigError, match=r"LogConfig\.min_cleanable_dirty_ratio = 1\.5 must be"):
        replace(LogConfig(), min_cleanable_dirty_ratio=1.5)


def test_the_lags_of_compaction_must_leave_room() -> None:
    LogConfig(min_compaction_lag_ms=5, max_compaction_lag_ms=5)
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms = 6 is above max\."):
        LogConfig(min_compaction_lag_ms=6, max_compaction_lag_ms=5)


def test_no_batch_is_accepted_that_could_not_be_read_back() -> None:
    LogConfig(max_message_bytes=64 << 20)
    with pytest.raises(ConfigError, match="largest batch that can be read back"):
        LogConfig(max_message_bytes=(64 << 20) + 1)


@pytest.mark.parametrize(
    ("oldest", "newest", "why"),
    [
        (900, 1_050, None),
        (899, 1_000, "timestamp 899 is 101 ms old, over message.timestamp.before.max.ms=100"),
        (1_000, 1_051, "timestamp 1051 is 51 ms ahead, over message.timestamp.after.max.ms=50"),
        (NO_TIMESTAMP, NO_TIMESTAMP, None),
    ],
)
def test_how_far_timestamps_may_be_from_now(oldest: int, newest: int, why: str | None) -> None:
    config = LogConfig(timestamp_before_max_ms=100, timestamp_after_max_ms=50)
    if why is None:
        config.check_timestamps(Timestamps(oldest, newest), 1_000)
        return
    with pytest.raises(InvalidTimestamp, match=re.escape(why)):
        config.check_timestamps(Timestamps(oldest, newest), 1_000)
