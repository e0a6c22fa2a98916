import pytest

from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import invoke


@pytest.mark.slow
def test_a_controller_is_asked_where_no_broker_is_known(cluster: LocalCluster) -> None:
    ran = invoke("quorum", "status", "-b", cluster.address("c1"), "-o", "json")
    assert (ran.code, ran.pick("leader")) == (0, 101)
    assert invoke("meta", "ls", "-b", cluster.address("c1")).code == 0


def test_nobody_there_is_said_in_a_sentence() -> None:
    ran = invoke("quorum", "status", "-b", "127.0.0.1:1", "--timeout", "1s")
    assert ran.code == 4
    assert ran.err.startswith("error: ")
