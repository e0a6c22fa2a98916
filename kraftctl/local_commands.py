"""A cluster on this machine that `up` made: down, ps, restart, logs, purge."""

import os
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import click

from kraftctl.control import ask, is_running, socket_path
from kraftctl.exit_codes import OK, Conflict, Guarded, NotFound
from kraftctl.output import Json, Output, table
from kraftctl.places import layout_of, no_cluster
from kraftctl.session import Session, command, output_option
from kraftlog.errors import ConfigError
from kraftlog.local.layout import Layout

DOWN_SECONDS = 60.0
POLL_SECONDS = 0.05
TAIL_LINES = 50

_STAMPED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


def cluster_name(function: click.decorators.FC) -> click.decorators.FC:
    return click.option("--name", metavar="NAME", help="Which local cluster, if not the current.")(
        function
    )


def nodes_of(described: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    nodes = described["nodes"]
    return [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []


def _name(session: Session, name: str | None) -> str:
    found = name or session.places.current
    if found is None:
        raise NotFound("there is no local cluster", hint="start one: kraftctl up -d")
    return found


@click.command()
@cluster_name
@output_option
@command
def down(session: Session, name: str | None) -> int:
    """Stop a local cluster, brokers first; its data stays, unless it is ephemeral."""
    name = _name(session, name)
    directory = session.places.cluster(name)
    path = socket_path(directory, os.environ)
    ephemeral = bool(_ask(session, name, "down")["ephemeral"])
    deadline = time.monotonic() + DOWN_SECONDS
    while os.path.exists(path) or _is_locked(directory):
        if time.monotonic() > deadline:
            raise Conflict(f"{name} has not stopped within {DOWN_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    if ephemeral:
        session.places.forget_current(name)
    then = "its data is gone" if ephemeral else "its data stays"
    data: Json = {"cluster": name, "running": False, "purged": ephemeral}
    session.output.show(data, f"{name} is stopped; {then}")
    return OK


def _expand(layout: Layout, node: str) -> list[str]:
    """The nodes of that name."""
    try:
        return layout.expand(node)
    except ConfigError as error:
        raise NotFound(error.message, hint=error.hint) from None


def _ask(
    session: Session, name: str, operation: str, nodes: Sequence[str] | None = None
) -> Mapping[str, Json]:
    """Have the supervisor of a cluster do something; NotFound says what there is instead."""
    layout_of(session.places, name)
    arguments: dict[str, Json] = {} if nodes is None else {"nodes": list(nodes)}
    return ask(socket_path(session.places.cluster(name), os.environ), operation, **arguments)


def _is_locked(directory: str) -> bool:
    from kraftctl.supervisor import locked  # noqa: PLC0415 - gRPC takes its time to load

    if not os.path.isdir(directory):
        return False
    try:
        with locked(directory):
            return False
    except Conflict:
        return True


@click.command()
@click.option("--pid", "node", metavar="NODE", help="Only its process id, as in kill -9 $(...).")
@cluster_name
@output_option
@command
def ps(session: Session, node: str | None, name: str | None) -> int:
    """The processes of a local cluster."""
    described = _ask(session, _name(session, name), "ps")
    if node is None:
        show_nodes(session.output, described)
        return OK
    found = [each for each in nodes_of(described) if node in (each["name"], str(each["node_id"]))]
    if not found or not found[0]["running"]:
        raise NotFound(f"no node {node!r} runs", hint="kraftctl ps shows them all")
    session.output.show({**described, "nodes": [found[0]]}, str(found[0]["pid"]))
    return OK


def show_nodes(output: Output, described: Mapping[str, Json]) -> None:
    rows: list[tuple[object, ...]] = [
        (
            node["name"],
            node["role"],
            node["node_id"],
            "running" if node["running"] else "down",
            node["pid"],
            node["address"],
        )
        for node in nodes_of(described)
    ]
    headings = ["NAME", "ROLE", "ID", "STATE", "PID", "ADDRESS"]
    machines = [node["machine"] for node in nodes_of(described)]
    if any(machines):
        headings.append("MACHINE")
        rows = [(*row, machine) for row, machine in zip(rows, machines, strict=True)]
    output.show(described, table(headings, rows))


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@cluster_name
@output_option
@command
def restart(session: Session, nodes: tuple[str, ...], name: str | None) -> int:
    """Stop nodes in order and start them again; without names all, one after the other."""
    name = _name(session, name)
    layout = layout_of(session.places, name)
    known = [member.name for member in layout.members]
    chosen = [each for node in nodes for each in _expand(layout, node)]
    for each in chosen or known:
        session.output.note(f"restarting {each}")
        _ask(session, name, "restart", [each])
    show_nodes(session.output, _ask(session, name, "ps"))
    return OK


@click.command()
@click.argument("node", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as more is written.")
@click.option("-n", "--lines", type=int, help="So many last lines. [50; with --since all]")
@click.option("--grep", metavar="REGEX", default="", help="Only lines that match.")
@click.option("--since", metavar="5m", default="", help="Only what was said since then.")
@cluster_name
@output_option
@command
def logs(
    session: Session,
    node: str | None,
    *,
    follow: bool,
    lines: int | None,
    grep: str,
    since: str,
    name: str | None,
) -> int:
    """What a node has said; without a name all of them."""
    session.output.refuse_endless(follow, "--follow")
    layout = layout_of(session.places, _name(session, name))
    names = _expand(layout, node) if node else [member.name for member in layout.members]
    paths = {each: layout.log_path(layout.find(each)) for each in names}
    wanted = _wanted(grep, since)
    lines = lines if lines is not None or since else TAIL_LINES
    ends = {}
    for each, path in paths.items():
        ends[each] = _tail(session.output, each, path, lines, wanted)
    while follow and not session.output.is_unread:
        time.sleep(POLL_SECONDS)
        for each, path in paths.items():
            ends[each] = _more(session.output, each, path, ends[each], wanted)
    session.output.end()
    return OK


def _wanted(grep: str, since: str) -> Callable[[str], bool]:
    """Which lines to show. One without a time belongs to the line before it."""
    from kraftlog.durations import to_seconds  # noqa: PLC0415

    try:
        pattern = re.compile(grep)
    except re.error as error:
        raise ConfigError(f"--grep {grep}: {error}", hint="it is a regular expression") from None
    begin = time.time() - to_seconds(since, "--since") if since else 0.0
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begin))
    first = f"{stamp},{int(begin * 1000) % 1000:03}" if since else ""
    is_late = not first

    def wanted(line: str) -> bool:
        nonlocal is_late
        if first and _STAMPED.match(line):
            is_late = line >= first
        return is_late and pattern.search(line) is not None

    return wanted


def _tail(
    output: Output, name: str, path: str, lines: int | None, wanted: Callable[[str], bool]
) -> int:
    """The last lines; returns where they end."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in deque(filter(wanted, file), maxlen=lines):
            _say(output, name, line)
        return file.tell()


def _more(
    output: Output, name: str, path: str, position: int, wanted: Callable[[str], bool]
) -> int:
    """What was written since; returns where it ends."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8", errors="replace") as file:
        file.seek(position)
        for line in filter(wanted, file):
            _say(output, name, line)
        return file.tell()


def _say(output: Output, name: str, line: str) -> None:
    output.each({"node": name, "line": line.rstrip()}, f"{name}  {line.rstrip()}")


@click.command()
@click.option("-y", "--yes", is_flag=True, help="Really.")
@cluster_name
@output_option
@command
def purge(session: Session, *, yes: bool, name: str | None) -> int:
    """Remove a local cluster with all its data."""
    name = _name(session, name)
    directory = session.places.cluster(name)
    if not os.path.isdir(directory):
        raise no_cluster(session.places, name)
    if is_running(directory):
        raise Conflict(f"{name} is running", hint="stop it first: kraftctl down")
    if not yes:
        raise Guarded(
            f"this removes {os.path.realpath(directory)} and all records in it", hint="add --yes"
        )
    shutil.rmtree(os.path.realpath(directory))
    if os.path.islink(directory):
        os.unlink(directory)
    session.places.forget_current(name)
    session.output.show({"purged": name}, f"{name} is gone")
    return OK
