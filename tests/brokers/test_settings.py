"""Settings: Kafka's defaults, and what follows from them."""

from brokers.settings import ISR_CHECK_MS_MAX, ReplicaSettings, TopicSettings


def test_defaults_are_kafkas() -> None:
    settings = ReplicaSettings()
    assert settings.replica_lag_ms == 30_000
    assert settings.fetch_wait_ms == 500
    assert settings.checkpoint_ms == 5_000
    assert settings.sessions_max == 1_000
    assert TopicSettings().min_insync_replicas == 1


def test_isrs_are_looked_at_twice_within_the_lag_and_often_enough() -> None:
    assert ReplicaSettings().isr_check_ms == ISR_CHECK_MS_MAX
    assert ReplicaSettings(replica_lag_ms=100).isr_check_ms == 50
    assert ReplicaSettings(replica_lag_ms=1).isr_check_ms == 1


def test_in_sync_replicas_must_be_heard_within_two_waits() -> None:
    assert ReplicaSettings(fetch_wait_ms=150).heard_window_ms == 300
