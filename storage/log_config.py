"""What one log is told: sizes, ages and policies. Defaults and ranges are those of Kafka's keys."""

from dataclasses import dataclass, field, fields
from typing import Self, TypeVar

from kraftlog import config_keys as keys
from kraftlog.config import Config
from kraftlog.config_keys import Key
from kraftlog.errors import ConfigError, InvalidTimestamp
from kraftlog.record_batch import BATCH_BYTES_MAX, Timestamps
from kraftlog.types import NO_TIMESTAMP, TimestampType

T = TypeVar("T")

FOREVER_MS = keys.FOREVER_MS
UNLIMITED = keys.UNLIMITED

_KEY = "key"


def _from(key: Key[T]) -> T:
    """A field with the default and the range of a key."""
    return field(default=key.default, metadata={_KEY: key})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The configuration of one log. `kraftlog.config_keys` says what each value means.

    With neither `compact` nor `delete` nothing is removed but by whoever owns the log.
    """

    segment_bytes: int = _from(keys.SEGMENT_BYTES)
    segment_ms: int = _from(keys.SEGMENT_MS)
    index_interval_bytes: int = _from(keys.INDEX_INTERVAL_BYTES)
    index_bytes_max: int = _from(keys.SEGMENT_INDEX_BYTES)
    retention_ms: int = _from(keys.RETENTION_MS)
    retention_bytes: int = _from(keys.RETENTION_BYTES)
    compact: bool = "compact" in keys.CLEANUP_POLICY.default
    delete: bool = "delete" in keys.CLEANUP_POLICY.default
    min_cleanable_dirty_ratio: float = _from(keys.MIN_CLEANABLE_DIRTY_RATIO)
    min_compaction_lag_ms: int = _from(keys.MIN_COMPACTION_LAG_MS)
    max_compaction_lag_ms: int = _from(keys.MAX_COMPACTION_LAG_MS)
    delete_retention_ms: int = _from(keys.DELETE_RETENTION_MS)
    file_delete_delay_ms: int = _from(keys.FILE_DELETE_DELAY_MS)
    max_message_bytes: int = _from(keys.MAX_MESSAGE_BYTES)
    timestamp_type: TimestampType = _from(keys.MESSAGE_TIMESTAMP_TYPE)  # noqa: RUF009 - a field
    timestamp_before_max_ms: int = _from(keys.MESSAGE_TIMESTAMP_BEFORE_MAX_MS)
    timestamp_after_max_ms: int = _from(keys.MESSAGE_TIMESTAMP_AFTER_MAX_MS)
    producer_id_expiration_ms: int = _from(keys.PRODUCER_ID_EXPIRATION_MS)

    def __post_init__(self) -> None:
        for each in fields(self):
            key: Key[object] | None = each.metadata.get(_KEY)
            if key is not None:
                key.check(getattr(self, each.name), name=f"LogConfig.{each.name}")
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                f"min.compaction.lag.ms = {self.min_compaction_lag_ms} is above"
                f" max.compaction.lag.ms = {self.max_compaction_lag_ms}",
                hint="a record would have to be compacted before it may be: lower the first",
            )
        if self.max_message_bytes > BATCH_BYTES_MAX:
            raise ConfigError(
                f"max.message.bytes = {self.max_message_bytes} is above {BATCH_BYTES_MAX},"
                " the largest batch that can be read back",
                hint=f"{BATCH_BYTES_MAX} at most",
            )

    @property
    def roll_ms(self) -> int:
        """The age at which a segment is closed. The active one is never compacted, so a bound on
        how long a record may stay uncompacted bounds this too.
        """
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    def check_timestamps(self, found: Timestamps, now_ms: int) -> None:
        """InvalidTimestamp if they are too far from now. To have none is allowed."""
        oldest_allowed = now_ms - self.timestamp_before_max_ms
        if found.oldest < oldest_allowed and found.oldest != NO_TIMESTAMP:
            raise InvalidTimestamp(
                f"timestamp {found.oldest} is {now_ms - found.oldest} ms old, over"
                f" message.timestamp.before.max.ms={self.timestamp_before_max_ms}",
                hint="send records sooner, or raise it",
            )
        if found.newest > now_ms + self.timestamp_after_max_ms:
            raise InvalidTimestamp(
                f"timestamp {found.newest} is {found.newest - now_ms} ms ahead, over"
                f" message.timestamp.after.max.ms={self.timestamp_after_max_ms}",
                hint="compare the clocks of producer and broker; or raise it",
            )

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """From the configuration of a topic, or of a broker for all topics that set nothing."""
        policy = config[keys.CLEANUP_POLICY]
        return cls(
            segment_bytes=config[keys.SEGMENT_BYTES],
            segment_ms=config[keys.SEGMENT_MS],
            index_interval_bytes=config[keys.INDEX_INTERVAL_BYTES],
            index_bytes_max=config[keys.SEGMENT_INDEX_BYTES],
            retention_ms=config[keys.RETENTION_MS],
            retention_bytes=config[keys.RETENTION_BYTES],
            compact="compact" in policy,
            delete="delete" in policy,
            min_cleanable_dirty_ratio=config[keys.MIN_CLEANABLE_DIRTY_RATIO],
            min_compaction_lag_ms=config[keys.MIN_COMPACTION_LAG_MS],
            max_compaction_lag_ms=config[keys.MAX_COMPACTION_LAG_MS],
            delete_retention_ms=config[keys.DELETE_RETENTION_MS],
            file_delete_delay_ms=config[keys.FILE_DELETE_DELAY_MS],
            max_message_bytes=config[keys.MAX_MESSAGE_BYTES],
            timestamp_type=config[keys.MESSAGE_TIMESTAMP_TYPE],
            timestamp_before_max_ms=config[keys.MESSAGE_TIMESTAMP_BEFORE_MAX_MS],
            timestamp_after_max_ms=config[keys.MESSAGE_TIMESTAMP_AFTER_MAX_MS],
            producer_id_expiration_ms=config[keys.PRODUCER_ID_EXPIRATION_MS],
        )
