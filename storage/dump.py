"""`python -m storage.dump`: what is in the files of a log, and whether it is sound.

It takes no lock and changes nothing, so it may be run beside a broker. Damage does not stop it: it
says which file, which byte, which offset and what is wrong, and goes on where that is safe.
"""

import argparse
import io
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntEnum

from storage.dump_events import OFFSETS_END, Event, FileBegin, Finding, Options, Severity
from storage.dump_format import JsonWriter, TableWriter, Writer, escaped
from storage.dump_walk import NothingToRead, Target, dump_target, find_targets
from storage.files import Files, OsFiles

EPILOG = """\
exit status:
  0  nothing is wrong
  1  damage was found
  2  wrong usage, or a path could not be read and the others show no damage
"""

_OFFSETS = re.compile(r"(\d+)(?::(\d+))?")


class Exit(IntEnum):
    """Exit codes."""

    CLEAN = 0
    DAMAGED = 1
    UNREAD = 2
    INTERRUPTED = 130


class Tally:
    """Counts what passes by."""

    def __init__(self) -> None:
        self.files = 0
        self.findings: Counter[Severity] = Counter()

    def add(self, event: Event) -> None:
        if isinstance(event, FileBegin):
            self.files += 1
        elif isinstance(event, Finding):
            self.findings[event.severity] += 1

    def facts(self) -> dict[str, int]:
        return {"files": self.files, **{each: self.findings[each] for each in Severity}}

    def exit_code(self) -> Exit:
        if self.findings[Severity.DAMAGE]:
            return Exit.DAMAGED
        return Exit.UNREAD if self.findings[Severity.UNREAD] else Exit.CLEAN


def main(arguments: Sequence[str] | None = None, files: Files | None = None) -> int:
    """Run the command and return its exit code."""
    parsed = _parser().parse_args(arguments)
    from_offset, to_offset = parsed.offsets
    options = Options(
        verify=parsed.verify, deep=parsed.deep, from_offset=from_offset, to_offset=to_offset
    )
    writer = JsonWriter() if parsed.output == "json" else TableWriter(verify=parsed.verify)
    return _dump(files or OsFiles(), parsed.paths, options, writer)


def _dump(files: Files, paths: Sequence[str], options: Options, writer: Writer) -> int:
    tally = Tally()
    for target in _targets(files, paths, tally):
        for event in dump_target(files, target, options):
            tally.add(event)
            for line in writer.lines(event):
                print(line)
    if tally.files:
        for line in writer.summary(tally.facts()):
            print(line)
    return tally.exit_code()


def _targets(files: Files, paths: Sequence[str], tally: Tally) -> Iterator[Target]:
    """What is behind the paths. One with nothing behind it does not keep the others."""
    for path in paths:
        try:
            yield from find_targets(files, path)
        except (NothingToRead, OSError) as error:
            tally.findings[Severity.UNREAD] += 1
            print(f"storage.dump: {_explained(path, error)}", file=sys.stderr)


def _explained(path: str, error: NothingToRead | OSError) -> str:
    if isinstance(error, NothingToRead):
        return f"{escaped(error.message)}\n  hint: {error.hint}"
    return f"{escaped(path)}: cannot be read: {error.strerror or error}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m storage.dump",
        description="Show what is in the files of a log, and find what is wrong with them."
        " Takes no lock and changes nothing.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a segment (.log), index (.index, .timeindex), producer snapshot (.snapshot),"
        " checkpoint, or a directory with all of these",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="json: an object a line"
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare the files with each other too, and list no batches and entries",
    )
    parser.add_argument("--deep", action="store_true", help="decode the records in the batches")
    parser.add_argument(
        "--offsets",
        type=offset_range,
        default=(0, OFFSETS_END),
        metavar="FROM[:TO]",
        help="list only what concerns these offsets, TO excluded; all is read and checked anyway",
    )
    return parser


def offset_range(text: str) -> tuple[int, int]:
    """What FROM or FROM:TO means."""
    found = _OFFSETS.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not FROM or FROM:TO, such as 100:200")
    begin, end = int(found[1]), int(found[2] or OFFSETS_END)
    if end <= begin:
        raise argparse.ArgumentTypeError(f"{text!r} is empty: TO is excluded")
    return begin, end


def run() -> int:
    """`main` for a process of its own, with the manners of a command."""
    # As other commands do: `... | head` ends this at once, without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return main()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
