import pytest

from kraftlog.errors import ConfigError
from quorum.core.config import EPOCH_LEAD_MAX, EPOCH_MAX, FAST, KAFKA, RaftConfig, Timing
from tests.quorum.core.cluster import CLUSTER_ID, key_of


def test_the_default_profile_has_kafkas_times() -> None:
    assert Timing() == KAFKA
    assert (KAFKA.fetch_timeout_ms, KAFKA.election_timeout_ms) == (2_000, 1_000)
    assert (KAFKA.request_timeout_ms, KAFKA.retry_backoff_ms) == (2_000, 20)
    assert (KAFKA.check_quorum_ms, KAFKA.begin_period_ms) == (3_000, 1_000)
    assert (KAFKA.fetch_wait_ms, KAFKA.update_voter_ms) == (500, 6_000)


def test_the_fast_profile_is_that_of_local_clusters() -> None:
    assert (FAST.fetch_timeout_ms, FAST.election_timeout_ms) == (600, 300)
    assert FAST.fetch_wait_ms == 150


@pytest.mark.parametrize("timing", [KAFKA, FAST, Timing(fetch_timeout_ms=100_000)])
def test_a_fetch_waits_at_most_a_quarter_of_the_fetch_timeout(timing: Timing) -> None:
    assert timing.fetch_wait_ms <= min(500, timing.fetch_timeout_ms / 4)
    assert timing.fetch_wait_ms < timing.check_quorum_ms


@pytest.mark.parametrize("name", ["fetch_timeout_ms", "election_timeout_ms", "retry_backoff_ms"])
@pytest.mark.parametrize("value", [0, -1])
def test_no_time_is_zero_or_less(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=name):
        Timing(**{name: value})


def test_times_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="fetch_timeout_ms is 7"):
        Timing(fetch_timeout_ms=7)
    with pytest.raises(ConfigError, match="not above the fetch wait"):
        Timing(request_timeout_ms=500)


def test_a_replica_needs_a_cluster_a_key_and_an_address() -> None:
    config = RaftConfig(cluster_id=CLUSTER_ID, key=key_of(1), endpoint="n1")
    assert config.flush_always, "whoever may become a voter keeps what it promises"
    assert config.epoch_lead_max == EPOCH_LEAD_MAX == 2**20
    assert EPOCH_MAX == 2**31 - 1
    # A batch of the greatest size fits into an answer: one batch is always returned.
    assert config.batch_bytes_max == 2 << 20
