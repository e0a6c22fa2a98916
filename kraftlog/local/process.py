"""One node of a local cluster: a process that can be started, paused, killed and started again.

It runs with Python's safe path and without PYTHONPATH: what lies in the current directory, a
`storage.py` of the user's say, must not take the place of a module of ours. Of our own variables it
gets only what it is told here.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kraftlog.errors import KraftError

PYTHON = (sys.executable, "-P", "-m")
STOP_SECONDS = 20.0
TAIL_LINES = 15

_DROPPED = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONSTARTUP", "PYTHONINSPECT")
_OUR_PREFIX = "KRAFTLOG_"
_INHERITED = ("KRAFTLOG_CODEC",)


class NodeFailed(KraftError):
    """A process ended, or did not begin, as it should."""


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED and (not name.startswith(_OUR_PREFIX) or name in _INHERITED)
    }
    return kept | dict(extra)


@dataclass(slots=True)
class NodeProcess:
    """What it writes goes to a file, at whose end it goes on after a restart."""

    name: str
    module: str
    arguments: Sequence[str]
    log_path: str
    variables: Mapping[str, str] = field(default_factory=dict)
    is_paused: bool = False
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Returns at once. Where it listens is known; whether it does, others look."""
        self.prepare()
        self.begin()

    def prepare(self) -> None:
        """The process, which does nothing but its imports until `begin`."""
        if self.is_running:
            raise NodeFailed(f"{self.name} runs already, as process {self.pid}")
        self._let_go()
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*PYTHON, "kraftlog.local.child", self.module, self.name],
                env=environment(self.variables),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the program, which then stops us
            )

    def begin(self, *first: Sequence[str]) -> None:
        """Run the module: with each of these arguments first, then with its own."""
        pipe = self._running().stdin
        if pipe is not None:
            runs = [list(arguments) for arguments in (*first, self.arguments)]
            with contextlib.suppress(BrokenPipeError):  # it has ended: others will notice
                pipe.write(json.dumps(runs).encode() + b"\n")
                pipe.flush()

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None: it runs, or was never started."""
        return None if self._process is None else self._process.poll()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise NodeFailed(f"{self.name} was never started")
        return self._process

    def signal(self, number: signal.Signals) -> None:
        self._running().send_signal(number)

    def pause(self) -> None:
        """It keeps its connections and does nothing: as if its machine were frozen."""
        self.signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self.signal(signal.SIGCONT)
        self.is_paused = False

    def kill(self) -> None:
        """kill -9, and wait for its end."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Its exit code, once it has ended."""
        process = self._running()
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise NodeFailed(
                f"{self.name} (process {process.pid}) has not ended within {seconds:g} s",
                hint=f"its words are in {self.log_path}",
            ) from None
        self._let_go()
        return code

    def close(self) -> None:
        """However it is, it ends now."""
        if self.is_running:
            self.kill()
        self._let_go()

    def _let_go(self) -> None:
        self.is_paused = False
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def log(self) -> str:
        """Everything that it has written."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def failure(self, what: str) -> NodeFailed:
        """An error that shows the end of its log."""
        last = "\n".join(self.log().splitlines()[-TAIL_LINES:])
        return NodeFailed(f"{self.name} {what}; it said last:\n{last}", hint=self.log_path)
