import pytest

from kraftctl.exit_codes import Guarded
from kraftctl.node_commands import drained
from kraftlog.local import LocalCluster
from kraftlog.types import TopicPartition
from tests.kraftctl.conftest import Run, invoke
from tests.kraftctl.test_schema_command import check

pytestmark = pytest.mark.slow


def state(kraftctl: Run, broker: int) -> str:
    rows = kraftctl("node", "ls", "-o", "json").data
    assert isinstance(rows, list)
    return next(str(row["state"]) for row in rows if row["broker"] == broker)


def test_a_broker_is_fenced_and_let_back_in(kraftctl: Run) -> None:
    assert state(kraftctl, 2) == "active"
    check(kraftctl("node", "fence", "2", "-o", "json"), "node fence")
    fenced = kraftctl("node", "fence", "2")
    assert (fenced.code, "kraftctl node unfence 2" in fenced.out) == (0, True)
    assert state(kraftctl, 2) == "fenced"
    assert kraftctl("health").code == 3
    assert kraftctl("node", "unfence", "2").code == 0
    assert kraftctl("health", "--wait", "--within", "30s").code == 0
    assert state(kraftctl, 2) == "active"


def test_a_broker_with_replicas_is_not_forgotten_by_accident(kraftctl: Run, topic: str) -> None:
    refused = kraftctl("node", "decommission", "1")
    assert (refused.code, "replicas" in refused.err) == (7, True)
    assert kraftctl("node", "decommission", "77").code == 5
    assert kraftctl("node", "fence", "77").code == 5


def test_a_drained_broker_is_replaced_by_those_with_fewest() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    plan = drained({one: (1, 2), two: (2, 3)}, 1, {2: 5, 3: 1, 4: 2})
    assert plan == {one: (3, 2)}
    with pytest.raises(Guarded):
        drained({one: (1, 2)}, 1, {2: 5})


def test_one_node_is_shown_and_one_that_cannot_be_drained_is_refused(
    kraftctl: Run, topic: str
) -> None:
    assert kraftctl("node", "info", "1", "-o", "json").pick("role") == "broker"
    assert kraftctl("node", "info", "101", "-o", "json").pick("state") == "leader"
    assert kraftctl("node", "info", "77").code == 5
    assert kraftctl("node", "drain", "1").code == 7


def test_a_node_needs_its_configuration() -> None:
    assert invoke("node", "run", "--role", "controller").code == 2
    assert invoke("node", "run", "--role", "janitor").code == 2


def test_a_controller_is_shown_where_no_broker_is() -> None:
    with LocalCluster(3, 0) as three:
        nodes = ",".join(map(three.address, three.controllers))
        three.kill("c3")
        found = invoke("node", "info", "102", "-b", nodes, "-o", "json")
        assert (found.code, found.pick("role")) == (0, "controller")
        check(found, "node info")
        gone = invoke("node", "info", "103", "-b", nodes)
        assert gone.code == 4
        assert f"controller 103 at {three.address('c3')} does not answer" in gone.err
