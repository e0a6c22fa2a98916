"""Controllers on this machine, each in a process of its own: started, watched, paused, killed.

For tests, drills, benchmarks and local clusters. A process is started with Python's safe path and
without PYTHONPATH: what lies in the current directory, a `storage.py` of the user's say, must not
take the place of a module of ours.
"""

import contextlib
import json
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Self

from kraftlog.errors import KraftError
from quorum.directory import Seat

READY_SECONDS = 20.0
STOP_SECONDS = 10.0

# Below the ports that systems hand out to clients: one of those could be taken by a connection of
# anybody's while the process that listens on it is down.
_PORTS = range(15_000, 32_000)


class ProcessFailed(KraftError):
    """A process ended, or did not begin, as it should."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def command_line(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "quorum", *arguments]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return inherited | dict(extra or {})


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself; its result, whatever that is."""
    return subprocess.run(  # noqa: S603 - our own program
        command_line(arguments),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=READY_SECONDS,
    )


@dataclass(slots=True)
class ControllerProcess:
    """A `form`, `join` or `run` with these arguments. What it logs goes to a file."""

    arguments: Sequence[str]
    log_path: str
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: Mapping[str, object] = field(default_factory=dict)
    """What it said when it began to listen."""
    _process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns at once; `wait_ready` waits until it listens."""
        self.close()
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command_line([*self.arguments, "-o", "json"]),
                env=environment(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def wait_ready(self, seconds: float = READY_SECONDS) -> Self:
        line = _read_line(self._stdout, seconds)
        if not line:
            code = self.process.poll()
            raise ProcessFailed(
                f"{' '.join(self.arguments)} is not ready (exit code {code})",
                hint=f"its words are in {self.log_path}",
            )
        document = json.loads(line)
        if document["error"] is not None:
            self.close()
            raise ProcessFailed(document["error"]["message"], hint=document["error"]["hint"])
        self.ready = document["data"]
        return self

    @property
    def process(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise ProcessFailed("the process was not started")
        return self._process

    @property
    def _stdout(self) -> IO[str]:
        out = self.process.stdout
        if out is None:
            raise ProcessFailed("the process has no output")
        return out

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """kill -9, and wait for its end."""
        self.process.kill()
        self.wait()

    def terminate(self) -> int:
        """SIGTERM, and its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        code = self.process.wait(seconds)
        self._stdout.close()
        return code

    def close(self) -> None:
        """However it is, it ends now."""
        if self._process is not None:
            self.process.kill()
            self.wait()


def _read_line(stream: IO[str], seconds: float) -> str:
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:  # select() knows descriptors below 1024 alone
        selector.register(stream, selectors.EVENT_READ)
        readable = selector.select(max(0.0, deadline - time.monotonic()))
    return stream.readline() if readable else ""


class LocalQuorum:
    """Voters formed together, each in a directory of its own below one."""

    def __init__(
        self,
        directory: str,
        nodes: int = 3,
        *,
        arguments: Sequence[str] = ("--profile", "fast"),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        os.makedirs(directory, exist_ok=True)
        self.arguments = tuple(arguments)
        self.seats = [
            Seat(100 + number, f"{directory}/c{number}", f"127.0.0.1:{free_port()}")
            for number in range(1, nodes + 1)
        ]
        self.cluster_id = self._form()
        self.nodes = {
            seat.node_id: ControllerProcess(
                ["run", "--directory", seat.directory, "--listen", seat.endpoint, *arguments],
                f"{seat.directory}.log",
                environment or {},
            )
            for seat in self.seats
        }

    def _form(self) -> str:
        voters = [f"--voter={seat.node_id}={seat.directory}@{seat.endpoint}" for seat in self.seats]
        result = run_command("form", "-o", "json", *voters)
        if result.returncode != 0:
            raise ProcessFailed(f"form failed: {result.stdout}{result.stderr}")
        return str(json.loads(result.stdout)["data"]["cluster_id"])

    @property
    def endpoints(self) -> list[str]:
        return [seat.endpoint for seat in self.seats]

    def endpoint(self, node_id: int) -> str:
        return next(seat.endpoint for seat in self.seats if seat.node_id == node_id)

    def start(self) -> Self:
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_ready()
        return self

    def restart(self, node_id: int) -> None:
        """Start one that is down."""
        self.nodes[node_id].start()
        self.nodes[node_id].wait_ready()

    def stop(self) -> list[int]:
        """SIGTERM to all; their exit codes."""
        running = [node for node in self.nodes.values() if node.running]
        for node in running:
            node.signal(signal.SIGTERM)
        return [node.wait() for node in running]

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[ControllerProcess]:
        return iter(self.nodes.values())
