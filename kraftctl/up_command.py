"""`kraftctl up`: a cluster of real processes on this machine, or what is missing of it."""

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

import click

from kraftctl.control import ask, is_running, socket_path
from kraftctl.exit_codes import OK, Conflict, error_of
from kraftctl.local_commands import nodes_of
from kraftctl.output import Json
from kraftctl.places import DEFAULT_CLUSTER, local_bootstrap
from kraftctl.progress import Progress
from kraftctl.session import Session, command, output_option
from kraftctl.supervisor import (
    Shape,
    make_directory,
    refuse_fewer,
    refuse_other_controllers,
    supervise,
)
from kraftlog.errors import ConfigError, TimeoutError_
from kraftlog.local.layout import is_listening, load

BASE_PORT = 19_000
LOG = "supervisor.log"
START_SECONDS = 90.0
POLL_SECONDS = 0.05

_FAILURE = re.compile(r"^error: (.*?)(?:\nhint:  (.*))?\Z", re.MULTILINE | re.DOTALL)

Topic = tuple[str, int | None, int | None]


@click.command()
@click.option("-c", "--controllers", type=click.IntRange(1), help="How many controllers. [3]")
@click.option(
    "-n", "--brokers", type=click.IntRange(1), help="How many brokers; more than run are added. [3]"
)
@click.option("--combined", is_flag=True, help="As many controllers as brokers, in pairs: n1, n2.")
@click.option("--topic", "topics", multiple=True, metavar="NAME[:PARTITIONS[:RF]]", help="Create.")
@click.option("--timing", type=click.Choice(["fast", "kafka"]), help="How patient it is. [fast]")
@click.option(
    "--base-port",
    type=click.IntRange(1, 65_000),
    help=f"Of a new cluster: controllers listen above it, brokers 100 higher. [{BASE_PORT}]",
)
@click.option(
    "--any-port",
    is_flag=True,
    envvar="KRAFTCTL_ANY_PORT",
    help="Of a new cluster: wherever it is free.",
)
@click.option("--data", metavar="DIR", help="Of a new cluster: where its data shall be.")
@click.option("--ephemeral", is_flag=True, help="Its data goes with `kraftctl down`.")
@click.option("-X", "settings", multiple=True, metavar="KEY=VALUE", help="A configuration key.")
@click.option("-d", "--detach", is_flag=True, help="Leave it running and return.")
@click.option("--name", metavar="NAME", help="Its name. [dev]")
@output_option
@command
def up(
    session: Session,
    /,
    *,
    topics: tuple[str, ...],
    detach: bool,
    name: str | None,
    data: str | None,
    **asked: object,
) -> int:
    """Start a cluster of real processes, or what is missing of it.

    Its data stays in a directory of its own; the next `up` goes on with it.
    """
    name = name or session.places.current or DEFAULT_CLUSTER
    shape = _shape(session.places.cluster(name), asked)
    wanted = [new_topic(text) for text in topics]
    if data is not None:
        _settle(session, name, data, shape)
    if not is_running(shape.directory) and not detach:
        return _run_here(session, name, shape, wanted)
    if is_running(shape.directory):
        _grow(session, shape)
    else:
        with _interrupted(session, name):
            _start_detached(session, shape)
    described = ask(socket_path(shape.directory, os.environ), "ps")
    _ready(session, name, wanted, described)
    return OK


def _settle(session: Session, name: str, data: str, shape: Shape) -> None:
    if shape.ephemeral:
        raise ConfigError("--data with --ephemeral", hint="a directory of yours is never removed")
    try:
        session.places.settle(name, data)
    except OSError as error:
        raise Conflict(f"--data {data}: {error.strerror}", hint="say another directory") from None


def _shape(directory: str, asked: Mapping[str, object]) -> Shape:
    """What the flags say."""

    def number(flag: str) -> int | None:
        value = asked[flag]
        return value if isinstance(value, int) else None

    settings = asked["settings"]
    texts = [str(text) for text in settings] if isinstance(settings, tuple) else []
    controllers, brokers = number("controllers"), number("brokers")
    if asked["combined"]:
        if None not in (controllers, brokers) and controllers != brokers:
            raise ConfigError(
                f"--combined with {controllers} controllers and {brokers} brokers",
                hint="each machine has one of both: say -n, or -c, alone",
            )
        controllers = brokers = brokers or controllers
    base_port = number("base_port")
    if base_port is not None and _is_said("any_port"):
        raise ConfigError("--base-port with --any-port", hint="say one of them")
    return Shape(
        directory,
        controllers,
        brokers,
        str(asked["timing"]) if asked["timing"] else None,
        dict(setting(text) for text in texts),
        base_port if base_port or asked["any_port"] else BASE_PORT,
        combined=bool(asked["combined"]),
        ephemeral=bool(asked["ephemeral"]),
    )


def _is_said(flag: str) -> bool:
    """On the command line, and not by the environment."""
    source = click.get_current_context().get_parameter_source(flag)
    return source is click.core.ParameterSource.COMMANDLINE


def new_topic(text: str) -> Topic:
    name, *numbers = text.split(":")
    if not name or len(numbers) > 2 or not all(number.isdigit() for number in numbers):
        raise ConfigError(f"--topic {text}", hint="it looks like --topic orders:6:3")
    counts = [int(number) for number in numbers] + [None, None]
    return name, counts[0], counts[1]


def setting(text: str) -> tuple[str, str]:
    key, given, value = text.partition("=")
    if not given:
        raise ConfigError(f"-X {text}", hint="it looks like -X min.insync.replicas=2")
    return key, value


def _grow(session: Session, shape: Shape) -> None:
    """`up -n 4` on a running cluster adds what is missing, and starts what is down."""
    path = socket_path(shape.directory, os.environ)
    nodes = nodes_of(ask(path, "ps"))
    have = sum(node["role"] == "broker" for node in nodes)
    refuse_fewer(have, shape.brokers)
    refuse_other_controllers(len(nodes) - have, shape.controllers)
    down = [str(node["name"]) for node in nodes if not node["running"]]
    if down:
        session.output.note(f"starting {', '.join(down)}")
        ask(path, "start", nodes=down)
    for _ in range(have, shape.brokers or have):
        session.output.note("adding a broker")
        ask(path, "add-broker")


def _start_detached(session: Session, shape: Shape) -> None:
    """A supervisor of its own session, which says when it is ready by answering."""
    make_directory(shape.directory)
    log = os.path.join(shape.directory, LOG)
    begun = os.path.getsize(log) if os.path.exists(log) else 0
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-m", "kraftctl.supervise", shape.to_json()],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    try:
        ended = _wait_ready(pid, shape.directory, Progress(session.output))
    except BaseException:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        raise
    if ended is not None:
        raise _failure(log, begun, ended)


def _wait_ready(pid: int, directory: str, progress: Progress) -> int | None:
    """Until the supervisor answers; if it ends instead, its exit code."""
    deadline = time.monotonic() + START_SECONDS
    while not is_running(directory):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            raise TimeoutError_(
                f"the cluster was not ready within {START_SECONDS:.0f} s",
                hint=f"what it said: {directory}/{LOG}",
            )
        if progress.is_due:
            progress.tell(f"waiting for {_waiting_for(directory)}")
        time.sleep(POLL_SECONDS)
    return None


def _waiting_for(directory: str) -> str:
    """What a cluster that starts is still without."""
    layout = load(directory)
    if layout is None:
        return "the quorum to be formed"
    missing = [each.name for each in layout.members if not is_listening(each)]
    return f"{', '.join(missing)} to listen" if missing else "all to be in service"


def _failure(log: str, begun: int, code: int) -> Exception:
    """What the supervisor has said last."""
    with open(log, encoding="utf-8", errors="replace") as file:
        file.seek(begun)
        text = file.read().strip()
    found = _FAILURE.search(text)
    message, hint = (found[1], found[2] or "") if found else (text, "")
    return error_of(code, f"the cluster did not start: {message}", hint or f"all of it: {log}")


@contextlib.contextmanager
def _interrupted(session: Session, name: str) -> Iterator[None]:
    """Say what Ctrl-C has led to where it comes too early; SIGTERM is the same here."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        session.output.note(f"{name} was not ready yet; nothing of it runs")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_here(session: Session, name: str, shape: Shape, topics: Sequence[Topic]) -> int:
    """In the foreground, until Ctrl-C."""

    def on_ready(described: Json) -> None:
        _ready(session, name, topics, described if isinstance(described, dict) else {})
        ends = "with its data" if shape.ephemeral else "its data stays"
        session.output.note(f"Ctrl-C stops it; {ends}")

    with _interrupted(session, name):
        supervise(shape, on_ready)
    if shape.ephemeral:
        session.places.forget_current(name)
    session.output.note(f"{name} is stopped")
    return OK


def _ready(
    session: Session, name: str, topics: Sequence[Topic], described: Mapping[str, Json]
) -> None:
    session.places.set_current(name)
    _create(session, name, topics)
    running = [str(node["name"]) for node in nodes_of(described) if node["running"]]
    lines = [
        f"cluster    {name}, id {described['cluster_id']}",
        f"bootstrap  {described['bootstrap']}",
        f"data       {described['directory']}",
        f"running    {' '.join(running)}",
        "next       kraftctl status",
    ]
    session.output.show(described, "\n".join(lines))


def _create(session: Session, name: str, topics: Sequence[Topic]) -> None:
    if not topics:
        return
    from kraftlog.admin import Admin  # noqa: PLC0415 - gRPC takes its time to load
    from kraftlog.admin_types import NewTopic  # noqa: PLC0415

    with Admin(local_bootstrap(session.places, name)) as admin:
        there = set(admin.list_topics())
        missing = [NewTopic(*topic) for topic in topics if topic[0] not in there]
        admin.create_topics(missing).raise_for_errors()
