"""Every command with nonsense for each of its arguments and options: an exit code that the help
explains, a sentence, and never a traceback. `CliRunner` raises whatever a command lets through.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kraftctl.cli import LazyGroup, main
from kraftctl.exit_codes import (
    CONFLICT,
    FAILED,
    NOT_FOUND,
    REFUSED,
    UNHEALTHY,
    UNREACHABLE,
    USAGE,
)
from tests.kraftctl.conftest import Ran, invoke

BAD = {FAILED, USAGE, UNHEALTHY, UNREACHABLE, NOT_FOUND, CONFLICT, REFUSED}
NONSENSE = ["", "\0", "..", "-1", "x" * 5_000, "é\n\u202e", "1e999", "9" * 40]
FORMS = ["table", "json"]
NOBODY = "127.0.0.1:1"
STARTERS = {"up", "demo", "quorum form", "quorum join", "node run", "node format", "spark"}
"""Of these only values that no type takes: with others they would start something."""
ANYTHING_GOES = {"drill ls", "schema", "ps", "config explain", "version"}
"""Where a word more or less is no mistake, or nobody has to be asked."""


def commands(group: LazyGroup, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, LazyGroup):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(commands(main))


def arguments_of(command: click.Command, value: str) -> list[str]:
    """All that it must have, each with this value."""
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    return [value for each in arguments if each.required or each.nargs == -1]


def typed_options(command: click.Command) -> Iterator[str]:
    """Options that do not take just any text."""
    for each in command.params:
        takes_text = isinstance(each.type, click.types.StringParamType | click.Path)
        if isinstance(each, click.Option) and not (each.is_flag or each.count or takes_text):
            yield each.opts[-1]


def where(command: click.Command) -> list[str]:
    """Nobody answers there."""
    names = {each.name for each in command.params}
    return ["-b", NOBODY, "--timeout", "50ms"] if {"bootstrap", "timeout"} <= names else []


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command finds no cluster and no file, and may write what it likes."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expect_refusal(ran: Ran, command: str) -> None:
    assert ran.code in BAD, f"{command}: {ran}"
    assert ran.err or ran.out
    assert "Traceback" not in ran.err + ran.out


@pytest.mark.parametrize("path", COMMANDS)
def test_an_option_that_there_is_not(path: str, away: Path) -> None:
    command = COMMANDS[path]
    ran = invoke(*path.split(), *arguments_of(command, "x"), "--no-such-option")
    assert ran.code == USAGE
    assert "--no-such-option" in ran.err


@pytest.mark.parametrize("path", COMMANDS)
def test_a_value_of_the_wrong_type(path: str, away: Path) -> None:
    command = COMMANDS[path]
    for option in typed_options(command):
        for value in ("", "x", "é\n", "1e999", "-" * 50):
            ran = invoke(*path.split(), *arguments_of(command, "x"), f"{option}={value}")
            assert ran.code == USAGE, (option, value, ran)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "path", [path for path in COMMANDS if path.split()[0] not in STARTERS and path not in STARTERS]
)
def test_arguments_that_make_no_sense(path: str, away: Path) -> None:
    command = COMMANDS[path]
    before = sorted(away.rglob("*"))
    for number, value in enumerate(NONSENSE):
        form = ["-o", FORMS[number % 2]] if "form" in {each.name for each in command.params} else []
        arguments = arguments_of(command, value)
        ran = invoke(*path.split(), *where(command), *form, "--", *arguments, stdin="a\n")
        if ran.code or path not in ANYTHING_GOES:
            expect_refusal(ran, f"{path} {arguments}")
    assert sorted(away.rglob("*")) == before


# -- terminals and pipes


def kraftctl(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "kraftctl", *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=100,
    )


@pytest.mark.slow
@pytest.mark.parametrize("language", ["C", "POSIX", "en_US.UTF-8", "nonsense"])
def test_any_language(language: str, away: Path) -> None:
    for arguments in (("drill", "ls"), ("config", "explain", "log.segment.bytes"), ("--help",)):
        ran = kraftctl(*arguments, LC_ALL=language, LANG=language, PYTHONUTF8="0")
        assert (ran.returncode, b"Traceback" in ran.stderr) == (0, False), ran.stderr


@pytest.mark.slow
def test_a_reader_that_has_seen_enough(away: Path) -> None:
    command = f"{sys.executable} -m kraftctl drill ls; echo status $? >&2"
    ran = subprocess.run(
        ["sh", "-c", f"({command}) | head -c 1"], capture_output=True, check=False, timeout=100
    )
    assert b"Traceback" not in ran.stderr
    assert b"status 0" in ran.stderr


@pytest.mark.slow
def test_a_disk_that_takes_nothing(away: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "kraftctl", "drill", "ls"]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=100)
    assert b"Traceback" not in ran.stderr
    assert ran.returncode != 0
