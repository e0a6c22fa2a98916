"""What a command prints: data on standard output, everything else on standard error.

table   for people
json    one document: {"command", "schema", "data", "warnings", "error"}
jsonl   for what comes one by one (records, events): one document a line, without an envelope
"""

import json
import select
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from kraftlog.errors import ConfigError, KraftError

SCHEMA = 1
FORMATS = ("table", "json", "jsonl")

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


class Output:
    """One command's."""

    def __init__(
        self,
        command: str,
        *,
        form: str = "table",
        quiet: bool = False,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        self.command = command
        self.form = form
        self.is_quiet = quiet
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self.warnings: list[str] = []
        self._kept: list[Json] = []

    @property
    def is_for_people(self) -> bool:
        return self.form == "table"

    @property
    def is_terminal(self) -> bool:
        return self._out.isatty()

    @property
    def is_unread(self) -> bool:
        """Whether whoever read our output has seen enough (`| head`): while nothing is written, no
        write tells.
        """
        try:
            number = self._out.fileno()
        except OSError:
            return False  # not a file at all
        poll = select.poll()
        poll.register(number, 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))

    def show(self, data: Json, text: str) -> None:
        """The result: the same facts for programs and for people."""
        if self.form == "json":
            self._document(data, None)
        elif self.form == "jsonl":
            rows = data if isinstance(data, list | tuple) else [data]
            for row in rows:
                self.row(row)
            self._warn()
        else:
            self.line(text)
            self._warn()

    def row(self, data: Json) -> None:
        """One of many."""
        self._write(self._out, json.dumps(data))

    # -- what comes one by one

    def refuse_endless(self, endless: bool, flag: str) -> None:
        """One JSON document of what has no end is never written."""
        if endless and self.form == "json":
            raise ConfigError(f"-o json and {flag}: there would be no end", hint="say -o jsonl")

    def each(self, data: Json, text: str) -> None:
        """The next one: printed at once, but for the one document of -o json."""
        if self.form == "json":
            self._kept.append(data)
        elif self.form == "jsonl":
            self.row(data)
        else:
            self.line(text)

    def end(self) -> None:
        """That was all of them."""
        if self.form == "json":
            self._document(self._kept, None)
        else:
            self._warn()

    def warn(self, text: str) -> None:
        """At once, before what comes one by one; in the one document of -o json with the rest."""
        if self.form == "json":
            self.warnings.append(text)
        else:
            self._write(self._err, f"warning: {text}")

    def _warn(self) -> None:
        for warning in self.warnings:
            self._write(self._err, f"warning: {warning}")

    def line(self, text: str) -> None:
        self._write(self._out, text)

    def note(self, text: str) -> None:
        """Progress and what to do next: never mixed with data, and not wanted by all."""
        if not self.is_quiet:
            self._write(self._err, text)

    def fail(self, error: KraftError) -> None:
        """What went wrong and what to do about it."""
        if self.form == "json":
            self._document(
                None,
                {
                    "code": error.code_name,
                    "message": error.message,
                    "hint": error.hint,
                    "retriable": error.retriable,
                },
            )
            return
        self._write(self._err, f"error: {error.message}")
        if error.hint:
            self._write(self._err, f"hint:  {error.hint}")

    def _document(self, data: Json, error: Json) -> None:
        document = {
            "command": self.command,
            "schema": SCHEMA,
            "data": data,
            "warnings": self.warnings,
            "error": error,
        }
        self._write(self._out, json.dumps(document))

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        stream.write(text + "\n")
        stream.flush()


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as they need to be; numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max(len(heading), *(len(row[column]) for row in cells)) if cells else len(heading)
        for column, heading in enumerate(headings)
    ]
    right = [
        bool(rows) and all(isinstance(row[column], int | float) for row in rows)
        for column in range(len(headings))
    ]
    return "\n".join(_line(line, widths, right) for line in [list(headings), *cells])


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case tuple() | list():
            return ",".join(map(str, value)) or "-"
        case _:
            return str(value)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()
