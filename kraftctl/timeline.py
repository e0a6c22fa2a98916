"""What happens, as it happens: one line each, with the time since the beginning.

Colour only on a terminal, and never as the only sign of anything (NO_COLOR switches it off).
"""

import os
import shutil
import sys
import threading
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
        self._is_live = self._out.isatty() and environment.get("TERM") != "dumb"
        self._live: tuple[str, ...] = ()
        self._lock = threading.Lock()
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

    def show(self, rows: Mapping[str, str]) -> None:
        """A table below all lines, in the place of the last one; only where it can be taken back.

        Any thread may call it.
        """
        if not self._is_live:
            return
        width = max(map(len, rows), default=0)
        columns = shutil.get_terminal_size().columns - 1
        lines = [f"  {name:<{width}}  {value}"[:columns] for name, value in rows.items()]
        with self._lock:
            self._redraw("", tuple(lines))

    def _write(self, text: str, colour: str) -> None:
        line = f"\x1b[{colour}m{text}\x1b[0m" if self._coloured and colour else text
        with self._lock:
            self._redraw(line + "\n", self._live)

    def _redraw(self, text: str, live: tuple[str, ...]) -> None:
        """A line above the table, and the table anew."""
        back = f"\x1b[{len(self._live)}A\x1b[J" if self._live else ""
        self._live = live
        self._out.write(back + text + "".join(f"{line}\n" for line in live))
        self._out.flush()
