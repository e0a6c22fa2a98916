"""A cluster on this machine: up, down, ps, restart, logs, purge."""

import os
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence

import click

from kraftctl.control import ask, socket_path
from kraftctl.exit_codes import OK, Conflict, Guarded, NotFound
from kraftctl.output import Json, Output, table
from kraftctl.places import DEFAULT_CLUSTER, local_bootstrap
from kraftctl.session import Session, command, output_option
from kraftlog.errors import ConfigError, KraftError
from kraftlog.local.layout import Layout, load

START_SECONDS = 90.0
DOWN_SECONDS = 60.0
POLL_SECONDS = 0.05
TAIL_LINES = 50


def cluster_name(function: click.decorators.FC) -> click.decorators.FC:
    return click.option("--name", metavar="NAME", help="Which local cluster, if not the current.")(
        function
    )


@click.command()
@click.option("-c", "--controllers", default=3, show_default=True, help="How many controllers.")
@click.option("-n", "--brokers", type=int, help="How many brokers; more than run are added. [3]")
@click.option("--topic", "topics", multiple=True, metavar="NAME[:PARTITIONS[:RF]]", help="Create.")
@click.option("--timing", type=click.Choice(["fast", "kafka"]), default="fast")
@click.option("-X", "settings", multiple=True, metavar="KEY=VALUE", help="A configuration key.")
@click.option("-d", "--detach", is_flag=True, help="Leave it running and return.")
@click.option("--name", metavar="NAME", help="Its name. [dev]")
@output_option
@command
def up(
    session: Session,
    controllers: int,
    brokers: int | None,
    *,
    topics: tuple[str, ...],
    timing: str,
    settings: tuple[str, ...],
    detach: bool,
    name: str | None,
) -> int:
    """Start a cluster of real processes, or what is missing of it.

    Its data stays in a directory of its own; the next `up` goes on with it.
    """
    name = name or session.places.current or DEFAULT_CLUSTER
    directory = session.places.cluster(name)
    wanted = [_new_topic(text) for text in topics]
    config = dict(_setting(text) for text in settings)
    if _is_running(directory):
        _grow(session, directory, brokers)
    elif detach:
        _start_detached(directory, controllers, brokers or 3, timing, config)
    else:
        return _run_here(session, name, (controllers, brokers or 3, timing, config), wanted)
    session.places.set_current(name)
    _create(session, name, wanted)
    described = ask(socket_path(directory, os.environ), "ps")
    session.output.show(described, _banner(name, described))
    return OK


def _new_topic(text: str) -> tuple[str, int | None, int | None]:
    name, *numbers = text.split(":")
    if len(numbers) > 2 or not all(number.isdigit() for number in numbers):
        raise ConfigError(f"--topic {text}", hint="it looks like --topic orders:6:3")
    counts = [int(number) for number in numbers] + [None, None]
    return name, counts[0], counts[1]


def _setting(text: str) -> tuple[str, str]:
    key, given, value = text.partition("=")
    if not given:
        raise ConfigError(f"-X {text}", hint="it looks like -X min.insync.replicas=2")
    return key, value


def _is_running(directory: str) -> bool:
    try:
        ask(socket_path(directory, os.environ), "ps")
    except KraftError:
        return False
    return True


def _grow(session: Session, directory: str, brokers: int | None) -> None:
    """`up -n 4` on a running cluster adds what is missing, and starts what is down."""
    path = socket_path(directory, os.environ)
    nodes = _nodes(ask(path, "ps"))
    down = [str(node["name"]) for node in nodes if not node["running"]]
    if down:
        session.output.note(f"starting {', '.join(down)}")
        ask(path, "start", nodes=down)
    have = sum(node["role"] == "broker" for node in nodes)
    if brokers is not None and brokers < have:
        raise Conflict(
            f"{have} brokers run, and {brokers} were asked for",
            hint="to take one out: kraftctl node decommission ID",
        )
    for _ in range(have, brokers or have):
        session.output.note("adding a broker")
        ask(path, "add-broker")


def _start_detached(
    directory: str, controllers: int, brokers: int, timing: str, config: Mapping[str, str]
) -> None:
    """A supervisor of its own session, which says when it is ready by answering."""
    os.makedirs(directory, exist_ok=True)
    log = os.path.join(directory, "supervisor.log")
    begun = os.path.getsize(log) if os.path.exists(log) else 0
    settings = [f"{key}={value}" for key, value in config.items()]
    shape = [directory, str(controllers), str(brokers), timing, *settings]
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-m", "kraftctl.supervise", *shape],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    deadline = time.monotonic() + START_SECONDS
    while not _is_running(directory):
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            with open(log, encoding="utf-8", errors="replace") as file:
                file.seek(begun)
                raise Conflict(f"the cluster did not start: {file.read().strip()}", hint=log)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGTERM)
            raise Conflict(f"the cluster was not ready within {START_SECONDS:.0f} s", hint=log)
        time.sleep(POLL_SECONDS)


_Shape = tuple[int, int, str, dict[str, str]]
_Topic = tuple[str, int | None, int | None]


def _run_here(session: Session, name: str, shape: _Shape, topics: Sequence[_Topic]) -> int:
    """In the foreground, until Ctrl-C."""
    from kraftctl.supervisor import Shape, supervise  # noqa: PLC0415 - gRPC takes its time

    controllers, brokers, timing, config = shape
    directory = session.places.cluster(name)

    def on_ready(_: object) -> None:
        session.places.set_current(name)
        _create(session, name, topics)
        layout = load(directory)
        session.output.show(_layout_json(layout), _layout_banner(name, layout))
        session.output.note("Ctrl-C stops it; its data stays")

    supervise(Shape(directory, controllers, brokers, timing, config), on_ready)
    return OK


def _create(session: Session, name: str, topics: Sequence[_Topic]) -> None:
    if not topics:
        return
    from kraftlog.admin import Admin  # noqa: PLC0415 - gRPC takes its time to load
    from kraftlog.admin_types import NewTopic  # noqa: PLC0415

    with Admin(local_bootstrap(session.places, name)) as admin:
        there = set(admin.list_topics())
        missing = [NewTopic(*topic) for topic in topics if topic[0] not in there]
        admin.create_topics(missing).raise_for_errors()


def _nodes(described: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    nodes = described["nodes"]
    return [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []


def _layout_json(layout: Layout | None) -> Json:
    if layout is None:
        return None
    names = {member.name: member.address for member in layout.members}
    return {"cluster_id": layout.cluster_id, "directory": layout.directory, "nodes": names}


def _layout_banner(name: str, layout: Layout | None) -> str:
    if layout is None:
        return name
    brokers = ",".join(each.address for each in layout.members if each.role == "broker")
    return _words(name, str(layout.cluster_id), brokers, layout.directory)


def _banner(name: str, described: Mapping[str, Json]) -> str:
    running = [str(node["name"]) for node in _nodes(described) if node["running"]]
    words = _words(
        name,
        str(described["cluster_id"]),
        str(described["bootstrap"]),
        str(described["directory"]),
    )
    return f"{words}\nrunning    {' '.join(running)}\nnext       kraftctl status"


def _words(name: str, cluster_id: str, bootstrap: str, directory: str) -> str:
    return f"cluster    {name}, id {cluster_id}\nbootstrap  {bootstrap}\ndata       {directory}"


# -- a cluster that is there


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
    """Stop a local cluster, brokers first; its data stays."""
    name = _name(session, name)
    path = socket_path(session.places.cluster(name), os.environ)
    ask(path, "down")
    deadline = time.monotonic() + DOWN_SECONDS
    while os.path.exists(path) or _is_locked(session.places.cluster(name)):
        if time.monotonic() > deadline:
            raise Conflict(f"{name} has not stopped within {DOWN_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    session.output.show({"cluster": name, "running": False}, f"{name} is stopped; its data stays")
    return OK


def _is_locked(directory: str) -> bool:
    from kraftctl.supervisor import locked  # noqa: PLC0415 - gRPC takes its time to load

    try:
        with locked(directory):
            return False
    except Conflict:
        return True


@click.command()
@cluster_name
@output_option
@command
def ps(session: Session, name: str | None) -> int:
    """The processes of a local cluster."""
    name = _name(session, name)
    described = ask(socket_path(session.places.cluster(name), os.environ), "ps")
    _show_nodes(session.output, described)
    return OK


def _show_nodes(output: Output, described: Mapping[str, Json]) -> None:
    rows = [
        (
            node["name"],
            node["role"],
            node["node_id"],
            "running" if node["running"] else "down",
            node["pid"],
            node["address"],
        )
        for node in _nodes(described)
    ]
    output.show(described, table(("NAME", "ROLE", "ID", "STATE", "PID", "ADDRESS"), rows))


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@cluster_name
@output_option
@command
def restart(session: Session, nodes: tuple[str, ...], name: str | None) -> int:
    """Stop nodes in order and start them again; without names all, one after the other."""
    name = _name(session, name)
    path = socket_path(session.places.cluster(name), os.environ)
    known = [str(node["name"]) for node in _nodes(ask(path, "ps"))]
    for node in nodes or known:
        session.output.note(f"restarting {node}")
        ask(path, "restart", nodes=[node])
    _show_nodes(session.output, ask(path, "ps"))
    return OK


@click.command()
@click.argument("node", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as more is written.")
@click.option("-n", "--lines", default=TAIL_LINES, show_default=True, help="So many last lines.")
@click.option("--grep", metavar="TEXT", default="", help="Only lines with this text.")
@cluster_name
@output_option
@command
def logs(
    session: Session, node: str | None, *, follow: bool, lines: int, grep: str, name: str | None
) -> int:
    """What a node has said; without a name all of them."""
    name = _name(session, name)
    layout = load(session.places.cluster(name))
    if layout is None:
        raise NotFound(f"there is no local cluster {name!r}")
    members = [layout.find(node)] if node else layout.members
    paths = {member.name: layout.log_path(member) for member in members}
    ends = {}
    for each, path in paths.items():
        ends[each] = _tail(session.output, each, path, lines, grep)
    while follow:
        time.sleep(POLL_SECONDS)
        for each, path in paths.items():
            ends[each] = _more(session.output, each, path, ends[each], grep)
    return OK


def _tail(output: Output, name: str, path: str, lines: int, grep: str) -> int:
    """The last lines; returns where they end."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in deque((line for line in file if grep in line), maxlen=lines):
            _say(output, name, line)
        return file.tell()


def _more(output: Output, name: str, path: str, position: int, grep: str) -> int:
    """What was written since; returns where it ends."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8", errors="replace") as file:
        file.seek(position)
        for line in (line for line in file if grep in line):
            _say(output, name, line)
        return file.tell()


def _say(output: Output, name: str, line: str) -> None:
    if output.is_for_people:
        output.line(f"{name}  {line.rstrip()}")
    else:
        output.row({"node": name, "line": line.rstrip()})


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
        raise NotFound(f"there is no local cluster {name!r}")
    if _is_running(directory):
        raise Conflict(f"{name} is running", hint="stop it first: kraftctl down")
    if not yes:
        raise Guarded(f"this removes {directory} and all records in it", hint="add --yes")
    shutil.rmtree(directory)
    session.places.forget_current(name)
    session.output.show({"purged": name}, f"{name} is gone")
    return OK
