"""What the command prints: data on stdout, as a table for people or JSON for programs; the rest on
stderr.
"""

import json
import sys
from collections.abc import Mapping, Sequence

from kraftlog.errors import KraftError

SCHEMA = 1

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


class Output:
    """One command's. `text` is for people, `data` for programs: the same facts."""

    def __init__(self, command: str, *, as_json: bool) -> None:
        self._command = command
        self._as_json = as_json
        self.warnings: list[str] = []

    def show(self, data: Json, text: str) -> None:
        if self._as_json:
            self._write_json(data, None)
        else:
            _write(text)
            for warning in self.warnings:
                sys.stderr.write(f"warning: {warning}\n")

    def note(self, text: str) -> None:
        """How far it is: never mixed with data."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def fail(self, error: KraftError) -> None:
        """What went wrong and what to do about it."""
        if self._as_json:
            fields: Json = {
                "code": error.code_name,
                "message": error.message,
                "hint": error.hint,
                "retriable": error.retriable,
            }
            self._write_json(None, fields)
        else:
            sys.stderr.write(f"error: {error.message}\n")
            if error.hint:
                sys.stderr.write(f"hint:  {error.hint}\n")

    def _write_json(self, data: Json, error: Json) -> None:
        document = {
            "command": self._command,
            "schema": SCHEMA,
            "data": data,
            "warnings": self.warnings,
            "error": error,
        }
        _write(json.dumps(document))


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
