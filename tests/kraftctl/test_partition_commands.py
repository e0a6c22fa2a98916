from collections import Counter
from pathlib import Path

import pytest

from kraftctl.partition_commands import place_of, spread
from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster
from kraftlog.types import TopicPartition
from tests.kraftctl.conftest import Ran, Run
from tests.kraftctl.test_schema_command import check


def places(count: int) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", number): (1,) for number in range(count)}


def test_leaders_and_replicas_are_spread_evenly() -> None:
    # R25
    plan = spread(places(12), (1, 2, 3, 4), 3)
    assert Counter(target[0] for target in plan.values()) == dict.fromkeys((1, 2, 3, 4), 3)
    assert Counter(b for target in plan.values() for b in target) == dict.fromkeys((1, 2, 3, 4), 9)
    assert all(len(set(target)) == 3 for target in plan.values())
    assert spread(places(2), (5,), None) == dict.fromkeys(places(2), (5,))
    with pytest.raises(ConfigError, match="3 replicas on 2"):
        spread(places(1), (1, 2), 3)


def test_places() -> None:
    assert place_of("a:b:3") == TopicPartition("a:b", 3)
    for text in ("a", "a:", ":1", "a:x"):
        with pytest.raises(ConfigError):
            place_of(text)


@pytest.mark.slow
def test_a_partition_is_described(kraftctl: Run, topic: str) -> None:
    kraftctl("produce", topic, "--partition", "0", stdin="a\nb\n")
    described = kraftctl("partition", "describe", f"{topic}:0")
    assert "leader" in described.out
    assert kraftctl("partition", "describe", f"{topic}:9").code == 5


@pytest.mark.slow
def test_leaders_are_elected_by_hand(kraftctl: Run, topic: str) -> None:
    # R42
    place = f"{topic}:0"

    def leader() -> object:
        return kraftctl("partition", "describe", place, "-o", "json").pick("state", "leader")

    refused = kraftctl("partition", "elect", place)
    assert (refused.code, "leads already" in refused.err) == (1, True)
    first = leader()
    other = 3 - int(str(first))  # brokers 1 and 2
    kraftctl("partition", "reassign", place, "--to", f"{other},{first}")
    assert leader() == first  # who leads goes on
    elected = kraftctl("partition", "elect", place, "-o", "json")
    assert elected.pick("elected") == [f"{topic}-0"], elected.err
    assert leader() == other
    assert kraftctl("partition", "elect", f"{topic}:0", "--unclean").code == 7


@pytest.mark.slow
def test_partitions_move_and_the_undo_moves_them_back(
    kraftctl: Run, topic: str, tmp_path: Path
) -> None:
    # R43
    undo = str(tmp_path / "undo.json")
    dry = kraftctl("partition", "reassign", topic, "--to", "1", "--dry-run")
    assert (dry.code, "FROM" in dry.err) == (0, True)
    moved = kraftctl("partition", "reassign", f"{topic}:0", "--to", "2", "--undo", undo)
    assert moved.code == 0, moved.err
    assert "1 of 1 have moved" in moved.err
    described = kraftctl("topic", "describe", topic, "-o", "json")
    assert described.pick(0, "partitions", 0, "replicas") == [2]
    slowly = ("--batch", "1", "--throttle", "1000000", "--within", "60s")
    back = kraftctl("partition", "reassign", topic, "--plan", undo, *slowly)
    assert back.code == 0, back.err
    assert "throttled" not in kraftctl("config", "get", f"topic:{topic}").out  # it is over
    described = kraftctl("topic", "describe", topic, "-o", "json")
    assert described.pick(0, "partitions", 0, "replicas") in ([1, 2], [2, 1])
    assert "nothing moves" in kraftctl("partition", "reassign", "--status").out
    assert "nothing moves" in kraftctl("partition", "reassign", "--cancel").out


@pytest.mark.slow
def test_moves_and_their_refusals_as_json(cluster: LocalCluster, kraftctl: Run, topic: str) -> None:
    name = "partition reassign"

    def reassign(*arguments: str) -> Ran:
        ran = kraftctl(*name.split(), *arguments, "-o", "json")
        check(ran, name)
        return ran

    place = f"{topic}:0"
    assert reassign(place, "--to", "b1").pick(0, "replicas") == [1]
    dry = reassign(place, "--to", "b2", "--dry-run")
    assert (dry.code, dry.pick(0, "partition"), dry.pick(0, "replicas")) == (0, 0, [2])
    cluster.pause("b2")  # so that it copies nothing
    try:
        assert reassign(place, "--to", "b2", "--no-wait").code == 0
        moving = reassign("--status")
        assert (moving.pick(0, "topic"), moving.pick(0, "adding")) == (topic, [2])
        assert reassign("--cancel").pick(0, "removing") == [1]
        assert reassign("--status").data == []
    finally:
        cluster.resume("b2")
        cluster.wait_healthy(in_sync=True)
    refused = reassign(place, "--to", "99")
    assert (refused.code, refused.data) == (2, None)
    late = reassign(f"{topic}:0", "--to", "b2", "--within", "soon")
    assert (late.code, late.data) == (2, None)
    assert reassign("no-such-topic", "--to", "1").code == 5


@pytest.mark.slow
def test_a_move_needs_one_target(kraftctl: Run, topic: str, tmp_path: Path) -> None:
    refused = kraftctl("partition", "reassign", topic, "--to", "99")
    assert refused.code == 2
    assert "broker 99 is not registered" in refused.err
    assert "moved" not in refused.out
    assert kraftctl("partition", "reassign", topic).code == 2
    assert kraftctl("partition", "reassign", topic, "--to", "1,1").code == 2
    assert kraftctl("partition", "reassign", topic, "--plan", str(tmp_path / "none")).code == 2
    bad = tmp_path / "bad.json"
    bad.write_text('{"partitions": [{}]}')
    assert kraftctl("partition", "reassign", topic, "--plan", str(bad)).code == 2
