"""The JSON of every command that has a schema is what the schema says."""

import json

import pytest

from kraftctl.schema_command import names, read_schema
from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import Ran, Run, invoke
from tests.kraftctl.json_schema import violations

ELSEWHERE = {"up", "down", "ps", "restart", "purge", "quorum add", "quorum remove"}
ELSEWHERE |= {"node decommission", "quorum transfer", "quorum step-down", "schema"}
ELSEWHERE |= {"node format", "node run", "quorum form", "quorum join"}
"""Checked by the tests of those commands, or of this one."""


def check(ran: Ran, name: str) -> None:
    """A command's document, whether it succeeded or not."""
    assert list(violations(json.loads(ran.out), read_schema(name))) == [], name


def lines(topic: str) -> list[str]:
    return [
        "status",
        "health",
        "events",
        "topic ls",
        f"topic create {topic}-more -p 1 -r 1",
        f"topic describe {topic}",
        f"topic alter {topic} --set retention.ms=1000000",
        f"topic offsets {topic}",
        f"topic add-partitions {topic} 3",
        f"topic trim {topic} --before end -y",
        f"topic delete {topic}-more -y",
        f"partition describe {topic}:0",
        "partition elect",
        f"partition verify {topic}:0",
        f"partition reassign {topic}:0 --to 2,1",
        f"config get topic:{topic}",
        f"config set topic:{topic} retention.ms=5000000",
        f"config unset topic:{topic} retention.ms",
        "quorum status",
        "quorum replication",
        "quorum why",
        "quorum history",
        "node ls",
        "node info 1",
        "node info 101",
        "node unfence 2",
        "meta ls",
        f"meta cat /topics/{topic}",
        "meta tree",
        "meta log",
        f"meta blame /topics/{topic}",
    ]


def of(line: str) -> str:
    """The name of the command in a line."""
    return next(each for each in sorted(names(), key=len, reverse=True) if line.startswith(each))


@pytest.mark.slow
def test_what_commands_print_is_what_their_schemas_say(
    kraftctl: Run, cluster: LocalCluster, topic: str
) -> None:
    tried = {"config explain", "node drain", "node fence"}
    for line in lines(topic):
        ran = kraftctl(*line.split(), "-o", "json")
        assert ran.code == 0, (line, ran.out, ran.err)
        check(ran, of(line))
        tried.add(of(line))
    check(invoke("config", "explain", "retention.ms", "-o", "json"), "config explain")
    check(kraftctl("node", "drain", "77", "-o", "json"), "node drain")
    check(kraftctl("node", "fence", "77", "-o", "json"), "node fence")
    assert tried | ELSEWHERE == set(names())


def test_schemas_are_listed_and_shown() -> None:
    assert invoke("schema").out.split("\n")[:-1] == names()
    shown = json.loads(invoke("schema", "quorum", "status").out)
    assert shown["properties"]["command"]["const"] == "quorum status"
    assert invoke("schema", "nonsense").code == 5
    check(invoke("schema", "-o", "json"), "schema")


def test_a_value_that_is_wrong_is_found() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert list(violations({"a": 1}, schema)) == []
    assert len(list(violations({"a": "1"}, schema))) == 1
    assert len(list(violations({"b": 1}, schema))) == 2
    assert len(list(violations([], schema))) == 1
    assert len(list(violations(True, {"type": "integer"}))) == 1
