import pytest

from kraftctl import progress
from tests.kraftctl.conftest import Run, invoke


@pytest.mark.slow
def test_a_healthy_cluster_is_green(kraftctl: Run, topic: str) -> None:
    assert kraftctl("health", "--wait", "--stable", "1s").code == 0
    status = kraftctl("status")
    assert status.code == 0
    assert status.out.startswith("GREEN")
    data = kraftctl("status", "-o", "json").data
    assert isinstance(data, dict)
    assert (data["grade"], data["controller"]) == ("green", 101)


def test_a_cluster_that_does_not_answer_is_red() -> None:
    for command in ("health", "status"):
        ran = invoke(command, "-b", "127.0.0.1:1", "--timeout", "1s")
        assert (ran.code, ran.out.startswith("RED")) == (4, True)


def test_status_tells_scripts_what_it_shows_people(kraftctl: Run, topic: str) -> None:
    shown = kraftctl("status").out
    data = kraftctl("status", "-o", "json").data
    assert isinstance(data, dict)
    beliefs = data["controllers"]
    assert [(each["node"], each["problem"]) for each in beliefs] == [(101, "")]
    assert beliefs[0]["believes"] in shown
    assert (data["under_replicated"], data["offline"]) == (0, 0)
    assert "under-replicated 0  under-min-isr 0  offline 0" in shown
    assert (beliefs[0]["lag"], beliefs[0]["voted"]) == (None, 101)
    for broker in data["brokers"]:
        assert broker["metadata_lag"] >= 0
        assert 0 <= broker["heartbeat_ago_ms"] < 60_000


def test_health_misses_brokers_that_never_came(
    kraftctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = len(kraftctl("node", "ls", "-o", "json").data)  # type: ignore[arg-type] # a list
    assert kraftctl("health", "--min-nodes", str(there)).code == 0
    ran = kraftctl("health", "--min-nodes", str(there + 1), "--for", "yellow")
    assert ran.code == 3
    assert f"{there} of {there + 1} brokers are in service" in ran.out
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    late = kraftctl("health", "--wait", "--min-nodes", str(there + 1), "--within", "1s")
    waited = f"waiting: red, {there} of {there + 1} brokers are in service"
    assert (late.code, waited in late.err.splitlines()) == (3, True)


@pytest.mark.slow
def test_partitions_that_refuse_acks_all_are_red(kraftctl: Run) -> None:
    made = ("-p", "2", "-r", "2", "--config", "min.insync.replicas=2")
    assert kraftctl("topic", "create", "strict", *made).code == 0
    assert kraftctl("node", "fence", "2").code == 0
    try:
        shown = kraftctl("status", "-o", "json")
        assert (shown.code, shown.pick("grade"), shown.pick("under_min_isr")) == (3, "red", 2)
        assert "RED because: 2 partitions take no acks=all" in kraftctl("status").out
    finally:
        assert kraftctl("node", "unfence", "2").code == 0
        assert kraftctl("topic", "delete", "strict", "-y").code == 0
        assert kraftctl("health", "--wait", "--within", "30s").code == 0
