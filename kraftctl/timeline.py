"""What happens, as it happens: one line each, with the time since the beginning.

Colour only on a terminal, and never as the only sign of anything (NO_COLOR switches it off).
"""

import os
import sys
import time
from collections.abc import Mapping
from typing import TextIO

_COLOURS = {"good": "32", "bad": "31", "act": "33", "plain": ""}
_MARKS = {"good": "✓", "bad": "✗", "act": "!", "plain": " "}


class Timeline:
    def __init__(
        self, out: TextIO | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._out = out or sys.stdout
        environment = os.environ if environment is None else environment
        self._coloured = self._out.isatty() and "NO_COLOR" not in environment
        self._begun = time.monotonic()

    def say(self, text: str, kind: str = "plain") -> None:
        """`kind` is good, bad, act (somebody breaks something) or plain."""
        seconds = time.monotonic() - self._begun
        self._write(f"t+{seconds:05.1f}  {_MARKS[kind]} {text}", _COLOURS[kind])

    def title(self, text: str) -> None:
        self._write(text, "1")

    def table(self, rows: Mapping[str, str]) -> None:
        width = max(map(len, rows))
        for name, value in rows.items():
            self._write(f"  {name:<{width}}  {value}", "")

    def _write(self, text: str, colour: str) -> None:
        line = f"\x1b[{colour}m{text}\x1b[0m" if self._coloured and colour else text
        self._out.write(line + "\n")
        self._out.flush()
