import pytest

from kraftctl.node_names import node_number, node_numbers
from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import Run


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("101", 101),
        ("b1", 1),
        ("b12", 12),
        ("c1", 101),
        ("c3", 103),
        ("0", 0),
        ("b0", None),
        ("x1", None),
        ("b", None),
        ("", None),
        ("-1", None),
        ("b\u0663", None),
        ("2147483647", 2**31 - 1),
        ("2147483648", None),
    ],
)
def test_a_node_has_a_number_and_a_name(text: str, number: int | None) -> None:
    assert node_number(text) == number


def test_several_nodes() -> None:
    assert node_numbers("1,b2, 3", "--to") == (1, 2, 3)
    for text in ("", "1,", "1,b1", "1;2", "x"):
        with pytest.raises(ConfigError, match="--to"):
            node_numbers(text, "--to")


@pytest.mark.slow
def test_commands_take_both(cluster: LocalCluster, kraftctl: Run, topic: str) -> None:
    assert kraftctl("node", "info", "b2", "-o", "json").pick("node") == 2
    assert kraftctl("node", "info", "c1", "-o", "json").pick("node") == 101
    assert kraftctl("node", "unfence", "b2").code == 0
    assert kraftctl("quorum", "transfer", "c1", "-o", "json").pick("leader") == 101
    assert "it is the last voter" in kraftctl("quorum", "remove", "c1").err
    assert kraftctl("config", "get", "broker:b1").code == 0
    moved = kraftctl("partition", "reassign", f"{topic}:0", "--to", "b2,b1", "--dry-run")
    assert moved.code == 0
    names = [cluster.layout.expand(each) for each in ("b1", "1", "c1", "101")]
    assert names == [["b1"], ["b1"], ["c1"], ["c1"]]
