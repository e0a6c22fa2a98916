"""`kraftctl meta ...` and `kraftctl events`: the metadata as a tree, and the log that made it."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Protocol

import click
from click.decorators import FC

from kraftctl.exit_codes import OK, NotFound
from kraftctl.metadata_history import QUIET, Entry, History
from kraftctl.metadata_source import LiveLog, read_directory
from kraftctl.output import Json, table
from kraftctl.session import Session, cluster_options, command
from kraftlog.errors import ConfigError

POLL_SECONDS = 0.2
CELL = 120


def source_options(function: FC) -> FC:
    """Of commands that read the log, of a cluster or of files."""
    option = click.option(
        "--dir", "directory", metavar="DIR", help="The files of a node instead; no lock is taken."
    )
    return option(cluster_options(function))


def source_history(session: Session, directory: str | None) -> History:
    if directory is not None:
        history, notes = read_directory(directory)
        session.output.warnings += notes
        return history
    live = LiveLog(session)
    live.read()
    return live.history


def _find(history: History, path: str) -> Json:
    """What stands at a path of the tree."""
    found: Json = history.tree()
    for step in [each for each in path.split("/") if each]:
        if not isinstance(found, dict) or step not in found:
            known = ", ".join(map(str, found)) if isinstance(found, dict) else "nothing"
            raise NotFound(f"there is no {path}", hint=f"there is: {known[:CELL] or 'nothing'}")
        found = found[step]
    return found


@click.command()
@click.argument("path", default="/")
@source_options
@command
def ls(session: Session, path: str, directory: str | None) -> int:
    """The names below a path of the tree."""
    found = _find(source_history(session, directory), path)
    names = [str(name) for name in found] if isinstance(found, dict) else [path]
    data: Json = list(names)
    session.output.show(data, "\n".join(names))
    return OK


@click.command()
@click.argument("path")
@source_options
@command
def cat(session: Session, path: str, directory: str | None) -> int:
    """What stands at a path, and all below it."""
    found = _find(source_history(session, directory), path)
    session.output.show(found, "\n".join(_leaves(found, "")) or "(nothing)")
    return OK


def _leaves(found: Json, prefix: str) -> Iterable[str]:
    if not isinstance(found, dict):
        yield f"{prefix or 'value'} = {_value(found)}"
        return
    for name, each in found.items():
        yield from _leaves(each, f"{prefix}.{name}" if prefix else str(name))


def _value(value: Json) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_value, value)) or "none"
    if isinstance(value, dict):
        return " ".join(f"{name}={_value(each)}" for name, each in value.items())
    return "-" if value is None else str(value)


@click.command()
@click.argument("path", default="/")
@source_options
@command
def tree(session: Session, path: str, directory: str | None) -> int:
    """All names below a path, indented."""
    found = _find(source_history(session, directory), path)
    session.output.show(found, "\n".join([path, *_branches(found, "  ")]))
    return OK


def _branches(found: Json, indent: str) -> Iterable[str]:
    for name, each in found.items() if isinstance(found, dict) else ():
        if isinstance(each, dict):
            yield f"{indent}{name}"
            yield from _branches(each, indent + "  ")
        else:
            yield f"{indent}{name} = {_value(each)}"


# -- the log


@click.command("log")
@click.option("--from", "begin", type=int, default=0, metavar="OFFSET", help="From there on.")
@click.option("-f", "--follow", is_flag=True, help="Go on as more is committed.")
@source_options
@command
def log_(session: Session, *, begin: int, follow: bool, directory: str | None) -> int:
    """Every record, and why it was written."""
    _show_entries(
        session, directory, follow=follow, wanted=lambda each: each.offset >= begin, log=True
    )
    return OK


@click.command()
@click.option("--since", default="", metavar="1h|OFFSET", help="Only what came after that.")
@click.option("-f", "--follow", is_flag=True, help="Go on as more happens.")
@source_options
@command
def events(session: Session, *, since: str, follow: bool, directory: str | None) -> int:
    """What has happened: leaders, brokers, topics, ISRs, configs; from the metadata log."""
    first_offset, first_ms = _since(since)

    def wanted(each: Entry) -> bool:
        new = each.offset >= first_offset and each.timestamp >= first_ms
        return new and each.kind not in QUIET

    _show_entries(session, directory, follow=follow, wanted=wanted, log=False)
    return OK


def _since(text: str) -> tuple[int, float]:
    from kraftlog.durations import to_seconds  # noqa: PLC0415

    if not text or text.isdigit():
        return int(text or 0), 0.0
    return 0, (time.time() - to_seconds(text, "--since")) * 1000


class Wanted(Protocol):
    def __call__(self, each: Entry) -> bool: ...


def _show_entries(
    session: Session, directory: str | None, *, follow: bool, wanted: Wanted, log: bool
) -> None:
    if follow and directory is not None:
        raise ConfigError("--follow and --dir", hint="files are read once: leave one of them out")
    if not follow:
        chosen = list(filter(wanted, source_history(session, directory).entries))
        data: Json = [each.json() for each in chosen]
        headings = ("OFFSET", "TIME", "KIND", "WHAT", "WHY") if log else ("TIME", "WHAT", "WHY")
        session.output.show(data, table(headings, [_row(each, log=log) for each in chosen]))
        return
    session.output.refuse_endless(follow, "--follow")
    live = LiveLog(session)
    while not session.output.is_unread:
        for each in filter(wanted, live.read()):
            session.output.each(each.json(), "  ".join(map(str, _row(each, log=log))))
        time.sleep(POLL_SECONDS)


def _row(entry: Entry, *, log: bool) -> tuple[object, ...]:
    at = time_text(entry.timestamp)
    if not log:
        return at, entry.text, entry.cause
    return entry.offset, at, entry.kind, entry.text, entry.cause


def time_text(timestamp: int) -> str:
    at = datetime.fromtimestamp(timestamp / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}.{timestamp % 1000:03d}Z"


@click.command()
@click.argument("path")
@source_options
@command
def blame(session: Session, path: str, directory: str | None) -> int:
    """Which records made a path what it is: why each was written, with what, by whom."""
    history = source_history(session, directory)
    found = history.blame(path)
    if not any((each.path + "/").startswith(path.rstrip("/") + "/") for each in found):
        _find(history, path)  # NotFound if there is no such path, nor was
    if not found:
        session.output.warnings.append("the log no longer has its records: a snapshot holds it")
    data: Json = [{**each.json(), "chain": history.chain(each)} for each in found]
    session.output.show(data, "\n".join(line for each in found for line in _blamed(history, each)))
    return OK


def _blamed(history: History, entry: Entry) -> list[str]:
    head = f"@{entry.offset}  {time_text(entry.timestamp)}  epoch {entry.epoch}  {entry.text}"
    links = history.chain(entry)
    return [head, *(f"     {each['how']} {each['text']} (@{each['offset']})" for each in links)]
