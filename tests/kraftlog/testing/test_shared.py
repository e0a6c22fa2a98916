import pytest

from kraftlog.errors import ConfigError
from kraftlog.testing.shared import SharedCluster


@pytest.mark.parametrize(
    "what", ["kill", "pause", "stop_node", "restart", "isolate", "stop", "add_broker"]
)
def test_a_shared_cluster_is_not_broken(what: str) -> None:
    arguments = () if what in ("stop", "add_broker") else ("b1",)
    with pytest.raises(ConfigError, match="other tests use this cluster too") as refused:
        getattr(SharedCluster(1, 1), what)(*arguments)
    assert str(refused.value).startswith(what)
    assert "faults=True" in refused.value.hint


def test_nor_is_what_lies_between_its_nodes() -> None:
    with pytest.raises(ConfigError, match="partition b1 b2: other tests"):
        SharedCluster(1, 2).partition("b1", "b2")
    with pytest.raises(ConfigError, match=r"reroute b1 \{\}: other tests"):
        SharedCluster(1, 2).reroute("b1", {})
