import pytest

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
    ran = invoke("health", "-b", "127.0.0.1:1", "--timeout", "1s")
    assert (ran.code, ran.out.startswith("RED")) == (3, True)
