"""Shells in which a test does what a document shows: `kraftctl` is there, and nothing else yet."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.waiting import wait_until

_ID = r"[\w-]{22}"
_LISTENING = re.compile(r"^(listening|endpoint) ", re.MULTILINE)
_VARYING = re.compile(rf"(\s+|(?<![\w-]){_ID}(?![\w-])|\d+)")


def blocks_of(document: Path, language: str = "") -> list[str]:
    """What stands between fences of this language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    return [block for tongue, block in fenced if tongue == language]


def environment(home: Path) -> dict[str, str]:
    return {
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "KRAFTCTL_ANY_PORT": "1",
    }


def in_shell(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Until it is done."""
    return subprocess.run(
        ["/bin/bash", "-ec", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env=environment(home),
    )


class Shell:
    """One in which a server runs in the foreground, until it is killed."""

    def __init__(self, command: str, home: Path, name: str) -> None:
        self._terminal = home / f"{name}.terminal"
        with self._terminal.open("w") as terminal:
            self._process = subprocess.Popen(
                ["/bin/bash", "-ec", f"exec {command}"],
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=subprocess.STDOUT,
                cwd=home,
                env=environment(home),
            )

    @property
    def said(self) -> str:
        """All that the terminal shows, the log included."""
        return self._terminal.read_text()

    def wait_for(self, lines: Sequence[str]) -> None:
        """Until it listens and has said these, in this order."""

        def has_said() -> bool:
            assert self._process.poll() is None, f"it has ended:\n{self.said}"
            said = iter(self.said.splitlines())
            if not _LISTENING.search(self.said):
                return False
            return all(any(looks_like(each).fullmatch(line) for line in said) for each in lines)

        wait_until(has_said, f"a shell that says {lines}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def looks_like(shown: str) -> re.Pattern[str]:
    """Ids, numbers and the width of columns may differ from what a document shows."""
    parts = _VARYING.split(shown.strip())
    kept, varying = parts[::2], parts[1::2]
    patterns = [re.escape(kept[0])]
    for found, text in zip(varying, kept[1:], strict=True):
        patterns += [_pattern(found), re.escape(text)]
    return re.compile(r"\s*" + "".join(patterns) + r"\s*")


def _pattern(found: str) -> str:
    if found.isspace():
        return r"\s+"
    return r"\d+" if found.isdigit() else _ID
