"""The tree of commands: every one loads, and has a line of help."""

import subprocess
import sys

import click
import pytest

from kraftctl.cli import LazyGroup, main
from tests.kraftctl.conftest import invoke


def commands(group: LazyGroup, path: str = "kraftctl") -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append((f"{path} {name}", command))
        if isinstance(command, LazyGroup):
            found += commands(command, f"{path} {name}")
    return found


@pytest.mark.parametrize(("path", "command"), commands(main))
def test_every_command_loads_and_is_explained(path: str, command: click.Command) -> None:
    assert command.help, path
    assert command.get_help(click.Context(command))


def test_help_loads_no_grpc() -> None:
    code = (
        "import sys; from kraftctl.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "sys.exit('grpc' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_command_that_does_not_exist_is_a_usage_error() -> None:
    ran = invoke("nonsense")
    assert ran.code == 2
    assert "there is no command kraftctl nonsense" in ran.err


def test_without_a_command_there_is_help() -> None:
    for line in ([], ["topic"]):
        ran = invoke(*line)
        assert "Commands:" in ran.out + ran.err


def test_paths_are_those_of_all_commands() -> None:
    known = [path.partition(" ")[2] for path, each in commands(main) if type(each) is click.Command]
    assert sorted(main.paths()) == sorted(known)
