"""A node that measures itself: what proposes in the leader's own process has to run there.

The child reads commands as lines of JSON and answers each with one; the parent starts three and
asks whoever leads.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import IO, Self

SECONDS = 60.0

Values = Mapping[str, float]
Act = Callable[[Values], Values]


def answer_commands(acts: Mapping[str, Act]) -> None:
    """In the child: until the parent closes our input."""
    for line in sys.stdin:
        command = json.loads(line)
        result = acts[command["do"]](command["with"])
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


class Subject:
    """In the parent: one such child."""

    def __init__(self, module: str, arguments: Sequence[str], log: str) -> None:
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def do(self, what: str, **values: float) -> Values:
        self._stream(self._process.stdin).write(json.dumps({"do": what, "with": values}) + "\n")
        self._stream(self._process.stdin).flush()
        answer = json.loads(self._stream(self._process.stdout).readline())
        if not isinstance(answer, dict):
            raise TypeError(f"{answer!r} is no answer")
        return answer

    def _stream(self, stream: IO[str] | None) -> IO[str]:
        if stream is None:
            raise RuntimeError("the child has no pipes")
        return stream

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._stream(self._process.stdin).close()
        self._stream(self._process.stdout).close()


class Subjects:
    """Three of them; `leader` is the one that says so."""

    def __init__(self, children: Sequence[Subject]) -> None:
        self._children = children

    def leader(self) -> Subject:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for child in self._children:
                if child.do("is_leader")["leads"]:
                    return child
            time.sleep(0.05)
        raise RuntimeError("nobody leads")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in self._children:
            child.close()
