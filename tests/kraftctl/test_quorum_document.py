"""The blocks of docs/QUORUM.md, run by shells: what runs on has one of its own."""

import re
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from quorum.local import free_port
from tests.kraftctl.shells import Shell, blocks_of, in_shell, looks_like
from tests.tidy.source import ROOT

DOCUMENT = ROOT / "docs" / "QUORUM.md"
ELSEWHERE = "/tmp/kraftlog/"  # noqa: S108 - what the document says, and nobody uses
SERVER = re.compile(r"(kraftctl|python -m) quorum (form|join) |kraftctl node run ")
LISTENS = re.compile(r"--listen (\S+)")
FORMED = re.compile(r"^cluster +(\S+)$", re.MULTILINE)
CLUSTER_ID = re.compile(r"--cluster-id (\S+)")


def _commands(blocks: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each command, and the lines that it is shown to say."""
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *said = part.splitlines()
            yield command, said


def _on_free_ports(blocks: list[str], home: Path) -> list[str]:
    """The same on ports and in a directory of ours."""
    text = "\0".join(blocks).replace(ELSEWHERE, f"{home}/alone-")
    for port in set(re.findall(r"127\.0\.0\.1:(\d+)", text)):
        text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
    return text.split("\0")


class Shells:
    """Those of somebody who does what the document says."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._servers: dict[str, Shell] = {}
        self._numbers = count()
        self._cluster_id = ""

    def type(self, command: str, shown: list[str]) -> None:
        if SERVER.match(command):
            self._serve(command, shown)
            return
        ran = in_shell(command, self._home)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}\n{self._logs()}"
        said = ran.stdout.splitlines()
        assert len(said) == len(shown) or not shown, said
        for line, like in zip(said, shown, strict=False):
            assert looks_like(like).fullmatch(line), f"{command} says {line!r}, not {like!r}"

    def _serve(self, command: str, shown: list[str]) -> None:
        """A server that takes another one's address takes its place: that one is lost."""
        address = LISTENS.findall(command)[-1]
        if address in self._servers:
            self._servers[address].kill()
        wanted = CLUSTER_ID.search(command)
        command = command.replace(wanted[1], self._cluster_id) if wanted else command
        shell = self._servers[address] = Shell(command, self._home, f"shell {next(self._numbers)}")
        shell.wait_for(shown)
        formed = FORMED.search(shell.said)
        self._cluster_id = formed[1] if formed else self._cluster_id

    def _logs(self) -> str:
        return "\n".join(each.said for each in self._servers.values())

    def kill_all(self) -> None:
        for shell in self._servers.values():
            shell.kill()


def test_what_a_document_shows_is_told_from_anything_else() -> None:
    shown = " 102  127.0.0.1:29102  follower  101 e1      6   6"
    assert looks_like(shown).fullmatch("   7  127.0.0.1:4711  follower  9 e17   1206 1206")
    assert not looks_like(shown).fullmatch(" 102  127.0.0.1:29102  leader  101 e1      6   6")
    identity = looks_like("cluster    1Q6vd806A4pDZJudceUUAg")
    assert identity.fullmatch("cluster  GfR0s_9bGTW8KFkKPFmpsw")
    assert not identity.fullmatch("cluster  none")


def test_every_command_is_found() -> None:
    found = list(_commands(blocks_of(DOCUMENT)))
    assert len(found) == DOCUMENT.read_text().count("\n$ ") >= 11
    assert all(blocks_of(DOCUMENT)), "a block is empty"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_block_of_the_page_about_the_quorum_does_what_it_shows(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    shells = Shells(tmp_path)
    try:
        for command, shown in _commands(_on_free_ports(blocks_of(DOCUMENT), tmp_path)):
            shells.type(command, shown)
    finally:
        shells.kill_all()
