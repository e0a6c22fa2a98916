import pytest

from kraftctl.look_commands import Look, _judge_quorum
from kraftlog.errors import NetworkError
from tests.kraftctl.conftest import Run, invoke


def test_the_worst_problem_is_the_grade() -> None:
    seen = Look()
    assert seen.grade == "green"
    seen.blame("yellow", "a", "b")
    assert seen.grade == "yellow"
    seen.blame("red", "c", "d")
    assert seen.grade == "red"


def test_a_quorum_without_a_leader_is_red() -> None:
    seen = Look({"a:1": NetworkError("x")})
    _judge_quorum(seen)
    assert seen.grade == "red"
    assert "kraftctl quorum why" in [then for _, _, then in seen.problems]


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
    ran = invoke("health", "-b", "127.0.0.1:1", "--timeout", "1s")
    assert (ran.code, ran.out.startswith("RED")) == (3, True)
