"""The JSON of every command that has a schema is what the schema says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.suite import Summary
from kraftctl.cli import LazyGroup, main
from kraftctl.drill_commands import _show
from kraftctl.output import Output
from kraftctl.places import Places
from kraftctl.schema_command import names, read_schema
from kraftctl.session import Session
from tests.chaos.drills.results import result
from tests.kraftctl.conftest import Ran, Run, invoke
from tests.kraftctl.json_schema import violations
from tests.kraftctl.test_cli import commands

ELSEWHERE = {
    "up": "test_local_commands",
    "down": "test_local_commands",
    "ps": "test_local_commands",
    "restart": "test_local_commands",
    "logs": "test_local_commands",
    "purge": "test_local_commands",
    "node drain": "test_local_commands",
    "node decommission": "test_local_commands",
    "demo": "test_demo",
    "log dump": "test_log_commands",
    "log verify": "test_log_commands",
    "node fence": "test_node_commands",
    "node format": "test_server_commands",
    "node run": "test_server_commands",
    "quorum add": "test_server_commands",
    "quorum form": "test_server_commands",
    "quorum join": "test_server_commands",
    "quorum remove": "test_server_commands",
    "quorum transfer": "test_quorum_lead",
    "quorum step-down": "test_quorum_lead",
    "spark env": "test_spark_commands",
    "drill ls": "test_schema_command",
    "drill run": "test_schema_command",
    "drill replay": "test_schema_command",
    "drill verify": "test_schema_command",
    "drill clean": "test_schema_command",
    "config explain": "test_schema_command",
    "schema": "test_schema_command",
    "version": "test_version_command",
}
"""Command -> the test file that checks its document: what `lines` cannot do to a shared cluster."""


def check(ran: Ran, name: str) -> None:
    """A command's document is what its schema says."""
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
        f"produce {topic} --value v",
        f"consume {topic} --from start -e",
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
def test_what_commands_print_is_what_their_schemas_say(kraftctl: Run, topic: str) -> None:
    for line in lines(topic):
        ran = kraftctl(*line.split(), "-o", "json")
        assert ran.code == 0, (line, ran.out, ran.err)
        check(ran, of(line))


def test_every_command_has_a_schema_and_a_test_of_its_document() -> None:
    """Whoever adds a command adds both."""
    tree = [path.partition(" ")[2] for path, each in commands(main) if not is_group(each)]
    assert sorted([*tree, "kraftctl"]) == names()
    tried = {of(line) for line in lines("t")}
    assert sorted(tree) == sorted(tried | set(ELSEWHERE))
    for name, module in ELSEWHERE.items():
        text = Path(__file__).with_name(f"{module}.py").read_text()
        assert re.search(rf'\b(check|read_schema)\([^\n]*"{name}"\)', text), (name, module)


def test_schemas_say_what_is_in_a_list() -> None:
    for name in set(names()) - {"schema"}:  # that one has any schema in it
        assert list(_lists_of_anything(read_schema(name)["properties"])) == [], name


def _lists_of_anything(schema: object) -> Iterator[object]:
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type", ())
    if "array" in ([kinds] if isinstance(kinds, str) else kinds) and "items" not in schema:
        yield schema
    parts = [*schema.values(), *schema.get("anyOf", ())]
    for each in parts:
        yield from _lists_of_anything(each)


def test_every_command_takes_the_same_formats() -> None:
    for path, each in commands(main):
        flags = {flag for option in each.params for flag in option.opts}
        assert is_group(each) or {"-o", "--output"} <= flags, path


def is_group(command: click.Command) -> bool:
    return isinstance(command, LazyGroup)


def test_the_documents_of_commands_without_a_cluster(tmp_path: Path) -> None:
    check(invoke("config", "explain", "retention.ms", "-o", "json"), "config explain")
    check(invoke("drill", "ls", "-o", "json"), "drill ls")
    run = result(tmp_path).directory
    check(invoke("drill", "verify", str(run.history), "-o", "json"), "drill verify")
    check(invoke("drill", "clean", "--out", str(tmp_path), "-o", "json"), "drill clean")


def test_a_drill_that_is_run_or_replayed_is_told_the_same_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run takes its time: tests/drills has them."""
    summary = Summary(find_drill("baseline"), (result(tmp_path),))

    def told(name: str) -> Ran:
        code = _show(Session(Output(name, form="json"), Places.of({}), "10s"), [summary])
        return Ran(code, capsys.readouterr().out, "")

    check(told("drill run"), "drill run")
    check(told("drill replay"), "drill replay")


def test_an_error_is_a_document_too(tmp_path: Path) -> None:
    for line in ("status -b nonsense", "topic ls -b 127.0.0.1:1 --timeout 1s", "drill run nothing"):
        ran = invoke(*line.split(), "-o", "json")
        assert ran.code in (2, 4), line
        check(ran, of(line))
        assert json.loads(ran.out)["data"] is None


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
