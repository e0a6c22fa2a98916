"""What the data plane is told: for all partitions together, and for the partitions of one topic."""

from dataclasses import dataclass, field

from storage.log_config import LogConfig

REPLY_BYTES_MAX = 1 << 20
"""A fetch reply has so much, plus what the last batch is over. Larger ones put their whole transfer
time on the latency of their neighbours.
"""

ISR_CHECK_MS_MAX = 500
"""Kafka looks at every partition, and so only twice in replica.lag.time.max.ms. We look at those
alone whose replicas do not have everything.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """Times and limits of replication and requests. Names and defaults are those of Kafka's keys,
    where Kafka has one.
    """

    replica_lag_ms: int = 30_000
    """replica.lag.time.max.ms: a follower that was not caught up for so long leaves the ISR."""
    fetch_wait_ms: int = 500
    """replica.fetch.wait.max.ms: how long a replica's fetch may be parked."""
    fetch_timeout_ms: int = 2_000
    """Beyond the wait: a source that does not answer for so long is asked anew."""
    fetch_partition_bytes: int = 1 << 20
    """replica.fetch.max.bytes"""
    fetch_backoff_ms: int = 1_000
    """replica.fetch.backoff.ms, the longest pause after errors; the first is a twentieth of it."""
    alter_backoff_ms: int = 50
    """How long to wait before an AlterPartitions that failed is sent again."""
    high_watermark_news_ms: int = 20
    """A higher high watermark alone reaches a parked replica this late: the next records usually
    bring it sooner, and for free.
    """
    sessions_max: int = 1_000
    """max.incremental.fetch.session.cache.slots"""
    session_idle_ms: int = 120_000
    """A session used more recently is not evicted for another one's sake."""
    parked_max: int = 10_000
    """Requests of one kind that wait. Beyond it they are refused."""
    checkpoint_ms: int = 5_000
    """replica.high.watermark.checkpoint.interval.ms"""
    retention_check_ms: int = 300_000
    """log.retention.check.interval.ms"""
    cleaner_backoff_ms: int = 15_000
    """log.cleaner.backoff.ms: the pause when no log needs compaction."""
    flush_check_ms: int = 10_000
    """How often segments that were closed since are made durable."""

    @property
    def isr_check_ms(self) -> int:
        return max(1, min(self.replica_lag_ms // 2, ISR_CHECK_MS_MAX))

    @property
    def heard_window_ms(self) -> int:
        """How recently every in-sync replica must have fetched for a leader to know that it still
        leads, when the controller does not answer.
        """
        return 2 * self.fetch_wait_ms


@dataclass(frozen=True, slots=True)
class ReplicationRates:
    """leader. and follower.replication.throttled.rate, bytes a second; None: no limit."""

    leader: int | None = None
    follower: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What holds for the partitions of one topic."""

    log: LogConfig = field(default_factory=LogConfig)
    min_insync_replicas: int = 1
    """Fewer in sync, and acks=all is refused."""
    flush_before_ack: bool = False
    """A copy counts only when it is flushed."""
    leader_throttled: tuple[str, ...] = ()
    """leader.replication.throttled.replicas: `partition:broker`, or `*` alone for all."""
    follower_throttled: tuple[str, ...] = ()
    """follower.replication.throttled.replicas"""
