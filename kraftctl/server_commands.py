"""`kraftctl quorum form|join` and `kraftctl node run|format`: this process becomes a node.

They read the same keys as configuration files do (`kraftctl config explain KEY`); a flag stands for
one of them. What they say when they begin goes to standard output, what they log to standard error.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click
from click.decorators import FC

from kraftctl.exit_codes import CONFLICT, NOT_FOUND, OK, USAGE, error_of, exit_code
from kraftctl.node_names import NODE, node_number
from kraftctl.places import check_address
from kraftctl.session import Session, command, output_option
from kraftctl.up_command import setting
from kraftlog.errors import ConfigError, ErrorCode, KraftError
from kraftlog.logs import start_logging

if TYPE_CHECKING:
    from brokers.config import BrokerConfig
    from kraftlog.config import Config
    from kraftlog.config_keys import Scope
    from quorum.config import ServerConfig
    from quorum.output import Output as QuorumOutput

ADDRESS = "HOST:PORT"

# Flag -> what it is called there, and the key that it stands for.
_KEYS = {
    "directory": ("--dir", "log.dirs"),
    "node_id": ("--id", "node.id"),
    "listen": ("--listen", "listeners"),
    "advertise": ("--advertise", "advertised.listeners"),
    "peers": ("--peers", "quorum.peers"),
    "timing": ("--timing", "timing.profile"),
    "metrics": ("--metrics", "metrics.listeners"),
    "state": ("--state", "quorum.state"),
    "rack": ("--rack", "broker.rack"),
    "metadata_dir": ("--metadata-dir", "metadata.log.dir"),
    "cluster_id": ("--cluster-id", "cluster.id"),
}

_FLAG = re.compile(r"(?<=\()flag --([\w.]+)(?=\))")

Flags = Mapping[str, object]


def server_options(function: FC) -> FC:
    """What every node can be told."""
    options = (
        click.option("--id", "--node-id", "node_id", metavar="N", help="1 or more (node.id)."),
        click.option("--dir", "--directory", "directory", metavar="DIR", help="Its data."),
        click.option("--listen", metavar=ADDRESS, help="Where to listen (listeners)."),
        click.option("--advertise", metavar=ADDRESS, help="Where others reach it, if not there."),
        click.option("--peers", metavar=f"{ADDRESS},...", help="Where controllers may be found."),
        click.option("--timing", "--profile", type=click.Choice(["kafka", "fast"]), help="Times."),
        click.option("--metrics", metavar=ADDRESS, help="For Prometheus."),
        click.option("--config", metavar="FILE", help="A TOML file of dotted keys."),
        click.option("-X", "settings", multiple=True, metavar="KEY=VALUE", help="Any other key."),
        click.option("-v", "--verbose", is_flag=True, help="Log debug lines too."),
    )
    for option in reversed(options):
        function = option(function)
    return output_option(function)


def state_option(function: FC) -> FC:
    return click.option(
        "--state",
        type=click.Choice(["metadata", "journal"]),
        help="What the quorum keeps: a cluster's metadata, or any records.",
    )(function)


@click.command()
@server_options
@state_option
@command
def form(session: Session, /, **flags: object) -> int:
    """Found a cluster: format a directory as its first voter, and run.

    \b
    kraftctl quorum form --id 101 --listen 127.0.0.1:9101 --dir c1

    Where one of --peers belongs to a cluster already, nothing is formed.
    """
    from quorum import commands  # noqa: PLC0415 - loads the server

    def act() -> int:
        config = controller_config(flags)
        return commands.form(config, _shown(session), restart=_restart(flags, config.peers))

    return _serve(flags, act)


@click.command()
@click.argument("seed", metavar=ADDRESS)
@click.option("--replace", type=NODE, metavar="ID", help="Take the place of a voter that is lost.")
@click.option("--observer", is_flag=True, help="Stay without a vote.")
@server_options
@state_option
@command
def join(session: Session, /, seed: str, **flags: object) -> int:
    """Become a member of a running cluster, and run.

    \b
    kraftctl quorum join 127.0.0.1:9101 --id 102 --listen 127.0.0.1:9102 --dir c2

    An empty directory gets an id of its own, catches up as an observer, and becomes a voter then.
    A controller that has lost its disk comes back by --replace instead of --id.
    """
    from kraftctl.replace import make_room  # noqa: PLC0415 - loads the server
    from quorum import commands  # noqa: PLC0415

    replaced, observer = flags.pop("replace"), bool(flags.pop("observer"))
    if isinstance(replaced, int):
        if flags["node_id"] is not None and node_number(str(flags["node_id"])) != replaced:
            raise ConfigError(f"--id {flags['node_id']} and --replace {replaced}", hint="say one")
        flags["node_id"] = str(replaced)

    def act() -> int:
        config = controller_config(flags)
        if isinstance(replaced, int):
            session.output.note(make_room(seed, replaced, config.directory))
        restart = _restart(flags, config.peers or (seed,))
        return commands.join(config, seed, _shown(session), observer=observer, restart=restart)

    check_address(seed, ADDRESS)
    return _serve(flags, act)


@click.command("format")
@click.option("--role", type=click.Choice(["controller", "broker"]), default="controller")
@click.option("--cluster-id", metavar="ID", help="What `quorum form` printed.")
@click.option("--metadata-dir", metavar="DIR", help="Of a broker: its copy of the metadata log.")
@server_options
@command
def format_(session: Session, /, role: str, **flags: object) -> int:
    """Make an empty directory that of a node of a cluster that exists; nothing is run.

    A controller that is formatted is not a voter yet: once it runs, `kraftctl quorum add` makes it
    one.
    """
    return _serve(flags, lambda: _format(session, role, flags))


def _format(session: Session, role: str, flags: Flags) -> int:
    if role == "broker":
        from brokers.running import format_directories  # noqa: PLC0415 - loads the server

        _show_facts(session, format_directories(broker_config(flags)))
        return OK
    from kraftlog.types import Uuid  # noqa: PLC0415
    from quorum import commands  # noqa: PLC0415 - loads the server

    if flags["cluster_id"] is None:
        raise ConfigError("--cluster-id is missing", hint="`kraftctl quorum form` printed it")
    try:
        cluster_id = Uuid.parse(str(flags["cluster_id"]))
    except ValueError as error:
        raise ConfigError(f"--cluster-id: {error}") from None
    config = controller_config({**flags, "cluster_id": None, "metadata_dir": None})
    return commands.format_replica(config, cluster_id, _shown(session))


@click.command()
@click.option(
    "--role",
    type=click.Choice(["controller", "broker", "both"]),
    required=True,
    help="both: two processes, from one file with [role.controller] and [role.broker].",
)
@click.option("--rack", metavar="NAME", help="Of a broker: where it stands.")
@click.option("--cluster-id", metavar="ID", help="Of a broker with new directories.")
@click.option("--metadata-dir", metavar="DIR", help="Of a broker: its copy of the metadata log.")
@server_options
@state_option
@command
def run(session: Session, /, role: str, **flags: object) -> int:
    """Run a controller or a broker, as an init system starts it.

    \b
    kraftctl node run --role controller --config c1.toml
    kraftctl node run --role broker --config b1.toml
    """
    if role == "both":
        from kraftctl.pair import run_pair  # noqa: PLC0415

        given = [_KEYS[name][0] for name in _KEYS if flags[name] is not None]
        if given or not flags["config"]:
            raise ConfigError(
                f"--role both with {', '.join(given) or 'no --config'}",
                hint="a file tells both: [role.controller] and [role.broker] hold what differs",
            )
        return run_pair(session, str(flags["config"]))
    return _serve(flags, lambda: _run(session, role, flags))


def _run(session: Session, role: str, flags: Flags) -> int:
    if role == "broker":
        from brokers.running import serve  # noqa: PLC0415 - loads the server

        return serve(broker_config(flags), lambda facts: _show_facts(session, facts))
    from quorum import commands  # noqa: PLC0415 - loads the server

    config = controller_config(flags)
    words = commands.Words(_restart(flags, config.peers))
    return commands.serve(config, _shown(session), words)


# -- from flags to servers


def controller_config(flags: Flags) -> "ServerConfig":
    from kraftlog.config_keys import Scope  # noqa: PLC0415 - loads all keys
    from quorum.config import server_config  # noqa: PLC0415

    return server_config(_config(Scope.CONTROLLER, flags))


def broker_config(flags: Flags) -> "BrokerConfig":
    from brokers.config import broker_config as read  # noqa: PLC0415
    from kraftlog.config_keys import Scope  # noqa: PLC0415

    return read(_config(Scope.BROKER, flags))


def _config(scope: "Scope", flags: Flags) -> "Config":
    """Flags win over the environment, and that over the file."""
    from kraftlog.config import load  # noqa: PLC0415

    file = flags["config"]
    path = None if file is None else str(file)
    return load(scope, flags=_keys(flags), environment=os.environ, file=path)


def _keys(flags: Flags) -> dict[str, object]:
    settings = flags["settings"]
    texts = [str(each) for each in settings] if isinstance(settings, tuple) else []
    found: dict[str, object] = dict(map(setting, texts))
    for name, (_, key) in _KEYS.items():
        if flags.get(name) is not None:
            found[key] = flags[name]
    return found


def _restart(flags: Flags, peers: tuple[str, ...]) -> str:
    """The command that starts the same controller again."""
    words = ["kraftctl", "node", "run", "--role", "controller"]
    for name, (flag, _) in _KEYS.items():
        if flags.get(name) is not None and name not in ("node_id", "peers"):
            words += [flag, str(flags[name])]
    if peers:
        words += ["--peers", ",".join(peers)]
    if flags["config"] is not None:
        words += ["--config", str(flags["config"])]
    settings = flags["settings"]
    for text in settings if isinstance(settings, tuple) else ():
        words += ["-X", str(text)]
    return shlex.join(words)


def _serve(flags: Flags, act: Callable[[], int]) -> int:
    """With logs on standard error, and with the errors of servers as ours."""
    start_logging(os.environ, verbose=bool(flags["verbose"]))
    try:
        return act()
    except KraftError as error:
        code = _exit_code(error)
        message = _in_our_words(error.message, flags)
        raise error_of(code, message, _with_file(error, code, flags["config"])) from None


def _in_our_words(message: str, flags: Flags) -> str:
    """Servers call a flag what its key is called."""
    given = {key: flag for name, (flag, key) in _KEYS.items() if flags.get(name) is not None}
    return _FLAG.sub(lambda found: given.get(found[1], f"-X {found[1]}"), message)


def _exit_code(error: KraftError) -> int:
    """Servers have errors of their own, about their directories."""
    from quorum.directory import AlreadyFormatted, NotFormatted  # noqa: PLC0415
    from storage.log_dirs import LogDirMismatch  # noqa: PLC0415

    match error:
        case NotFormatted():
            return NOT_FOUND
        case AlreadyFormatted() | LogDirMismatch():
            return CONFLICT
        case _:
            return exit_code(error)


def _with_file(error: KraftError, code: int, file: object) -> str:
    """What does not fit may stand in the file: a hint that names it."""
    if error.code == ErrorCode.INCONSISTENT_CLUSTER_ID:
        return (
            "its own id is in meta.properties of its directory, the other one is that of --peers:"
            " name controllers of its cluster, or give it an empty --dir"
        )
    if file is None or code not in (USAGE, CONFLICT) or str(file) in error.message:
        return error.hint
    return f"{error.hint}; it was told by {file}" if error.hint else f"see {file}"


def _show_facts(session: Session, facts: Mapping[str, object]) -> None:
    text = "\n".join(f"{name:<13}{value}" for name, value in facts.items())
    plain = {
        name: value if isinstance(value, int) or value is None else str(value)
        for name, value in facts.items()
    }
    session.output.show(plain, text)


def _shown(session: Session) -> "QuorumOutput":
    """What the quorum's own commands print, printed as ours do."""
    from quorum.output import Json, Output  # noqa: PLC0415

    class Shown(Output):
        def show(self, data: Json, text: str) -> None:
            session.output.show(data, text)

        def note(self, text: str) -> None:
            session.output.note(text)

    return Shown(session.output.command, as_json=False)
