import pytest

from kraftctl.meta_commands import time_text
from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import Run, invoke


def test_times_are_readable() -> None:
    assert time_text(1_700_000_000_123) == "2023-11-14 22:13:20.123Z"


@pytest.mark.slow
def test_the_tree_is_the_same_live_and_offline(
    kraftctl: Run, cluster: LocalCluster, topic: str
) -> None:
    files = ("--dir", cluster.data_path("c1"))
    path = f"/topics/{topic}/1"
    live = kraftctl("meta", "cat", path, "-o", "json")
    assert live.code == 0
    assert invoke("meta", "cat", path, *files, "-o", "json").data == live.data
    assert "brokers" in invoke("meta", "ls", *files).out
    assert topic in invoke("meta", "tree", "/topics", *files).out
    assert kraftctl("meta", "cat", "/topics/nowhere").code == 5


@pytest.mark.slow
def test_blame_tells_why_with_what_and_by_whom(kraftctl: Run, topic: str) -> None:
    blamed = kraftctl("meta", "blame", f"/topics/{topic}").out
    assert f"topic {topic} is created" in blamed
    assert "because admin request" in blamed
    assert "decided by 101 leads epoch" in blamed
    led = kraftctl("meta", "blame", f"/topics/{topic}/0/leader")
    assert f"{topic}-0 begins on" in led.out
    assert "is created" not in led.out
    assert led.err == ""
    for nowhere in ("/topics/nowhere", f"/topics/{topic}/0/nothing", f"/topics/{topic}/99/leader"):
        assert kraftctl("meta", "blame", nowhere).code == 5


@pytest.mark.slow
def test_events_are_what_happened(kraftctl: Run, topic: str) -> None:
    told = kraftctl("events").out
    assert f"topic {topic} is created" in told
    assert "broker 1 is unfenced" in told
    assert "RequestDone" in kraftctl("meta", "log").out
    end = kraftctl("events", "--since", "1000000000")
    assert (end.code, topic in end.out) == (0, False)
    assert topic in kraftctl("events", "--since", "1h").out
    assert kraftctl("events", "--since", "soon").code == 2
    assert invoke("events", "--follow", "--dir", "/").code == 2


def test_what_cannot_be_read_is_said_in_a_sentence() -> None:
    assert invoke("meta", "ls", "--dir", "/nonexistent").code == 5
    ran = invoke("meta", "ls", "-b", "127.0.0.1:1", "--timeout", "1s")
    assert (ran.code, ran.err.startswith("error: ")) == (4, True)
