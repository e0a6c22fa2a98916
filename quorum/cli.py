"""The arguments of `python -m quorum`, and its exit codes.

0 ok   1 the operation failed   2 usage   3 unhealthy   4 unreachable or timed out   5 not found
6 conflict   70 a broken invariant   74 a failed fsync   130 interrupted
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from kraftlog import config_keys as keys
from kraftlog import controller_keys
from kraftlog.config import load
from kraftlog.config_keys import Scope
from kraftlog.errors import (
    ConfigError,
    ErrorCode,
    KraftError,
    LogDirLocked,
    NetworkError,
    RequestTimedOut,
)
from kraftlog.logs import start_logging
from kraftlog.types import Uuid
from quorum import commands
from quorum.config import ServerConfig, server_config
from quorum.directory import AlreadyFormatted, NotFormatted, Seat
from quorum.output import Output

FAILED = 1
USAGE = 2
UNREACHABLE = 4
NOT_FOUND = 5
CONFLICT = 6
INTERRUPTED = 130

# Flags that stand for a key.
_FLAGS = {
    "directory": keys.LOG_DIRS.names[Scope.CONTROLLER],
    "node_id": keys.NODE_ID.names[Scope.CONTROLLER],
    "listen": keys.CONTROLLER_LISTENERS.names[Scope.CONTROLLER],
    "advertise": keys.CONTROLLER_ADVERTISED_LISTENERS.names[Scope.CONTROLLER],
    "peers": keys.QUORUM_PEERS.names[Scope.CONTROLLER],
    "profile": keys.TIMING_PROFILE.names[Scope.CONTROLLER],
    "state": controller_keys.QUORUM_STATE.names[Scope.CONTROLLER],
    "metrics": keys.METRICS_LISTENERS.names[Scope.CONTROLLER],
}


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    output = Output(options.command, as_json=options.output == "json")
    try:
        start_logging(os.environ, verbose=options.verbose)
        return _run(options, output)
    except KraftError as error:
        output.fail(error)
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def exit_code(error: KraftError) -> int:
    match error:
        case ConfigError():
            return USAGE
        case NetworkError() | RequestTimedOut():
            return UNREACHABLE
        case NotFormatted() | commands.VoterUnknown():
            return NOT_FOUND
        case AlreadyFormatted() | LogDirLocked():
            return CONFLICT
        case KraftError(code=ErrorCode.VOTER_NOT_FOUND):
            return NOT_FOUND
        case KraftError(code=ErrorCode.DUPLICATE_VOTER):
            return CONFLICT
        case _:
            return FAILED


# -- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=commands.PROGRAM,
        description="The controller quorum: Raft over gRPC.",
        epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 unhealthy, 4 unreachable or timed out,"
        " 5 not found, 6 conflict, 70 broken invariant, 74 failed fsync, 130 interrupted.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("-o", "--output", choices=("table", "json"), default="table")
    shared.add_argument("-v", "--verbose", action="store_true", help="log debug lines too")
    _add_server_commands(subparsers, shared)
    _add_client_commands(subparsers, shared)
    return parser


def _add_server_commands(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",
    shared: argparse.ArgumentParser,
) -> None:
    server = _server_options()
    both = [shared, server]
    form = subparsers.add_parser(
        "form", parents=both, help="found a cluster: format a directory as its first voter, and run"
    )
    form.add_argument(
        "--voter",
        action="append",
        default=[],
        metavar="ID=DIR@HOST:PORT",
        help="format several directories at once as the first voters, and run none of them",
    )
    join = subparsers.add_parser(
        "join", parents=both, help="become a member of a running cluster, and run"
    )
    join.add_argument("seed", metavar="HOST:PORT", help="any controller of the cluster")
    join.add_argument("--observer", action="store_true", help="stay without a vote")
    subparsers.add_parser("run", parents=both, help="run a controller whose directory is formatted")
    fmt = subparsers.add_parser(
        "format", parents=both, help="format an empty directory as an observer of a cluster"
    )
    fmt.add_argument("--cluster-id", required=True, metavar="ID", help="what `form` printed")


def _server_options() -> argparse.ArgumentParser:
    server = argparse.ArgumentParser(add_help=False)
    server.add_argument("--directory", metavar="DIR", help="the controller's directory (log.dirs)")
    server.add_argument("--node-id", metavar="N", help="1 or more (node.id)")
    server.add_argument("--listen", metavar="HOST:PORT", help="where to listen (listeners)")
    server.add_argument(
        "--advertise",
        metavar="HOST:PORT",
        help="where others reach it, if not there (advertised.listeners)",
    )
    server.add_argument(
        "--peers", metavar="HOST:PORT,...", help="where controllers may be found (quorum.peers)"
    )
    server.add_argument("--profile", choices=("kafka", "fast"), help="times (timing.profile)")
    server.add_argument(
        "--state",
        choices=("metadata", "journal"),
        help="what the quorum keeps: a cluster's metadata, or any records (quorum.state)",
    )
    server.add_argument("--metrics", metavar="HOST:PORT", help="for Prometheus (metrics.listeners)")
    server.add_argument("--config", metavar="FILE", help="a TOML file of dotted keys")
    server.add_argument(
        "-X", dest="keys", action="append", default=[], metavar="KEY=VALUE", help="any other key"
    )
    return server


def _add_client_commands(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",
    shared: argparse.ArgumentParser,
) -> None:
    client = argparse.ArgumentParser(add_help=False)
    client.add_argument(
        "-b", "--bootstrap", required=True, metavar="HOST:PORT,...", help="some controllers"
    )
    client.add_argument("--timeout", default="5s", metavar="TIME", help="in all (default 5s)")
    both = [shared, client]
    subparsers.add_parser("status", parents=both, help="who leads, and what each one believes")
    add = subparsers.add_parser("add", parents=both, help="make an observer a voter")
    add.add_argument("address", metavar="HOST:PORT", help="where the observer listens")
    remove = subparsers.add_parser("remove", parents=both, help="take a voter out")
    remove.add_argument("voter", metavar="ID[:DIRECTORY-ID]")
    propose = subparsers.add_parser("propose", parents=both, help="append records to the log")
    propose.add_argument("values", nargs="+", metavar="VALUE")


# -- from arguments to commands


def _run(options: argparse.Namespace, output: Output) -> int:
    match options.command:
        case "form":
            return _form(options, output)
        case "join":
            seed = _address(options.seed)
            config, restart = _config(options), _restart(options)
            return commands.join(config, seed, output, observer=options.observer, restart=restart)
        case "run":
            return commands.serve(_config(options), output, commands.Words(_restart(options)))
        case "format":
            return commands.format_replica(_config(options), _uuid(options.cluster_id), output)
        case _:
            return _ask(options, output)


def _ask(options: argparse.Namespace, output: Output) -> int:
    bootstrap = keys.QUORUM_PEERS.parse(options.bootstrap, name="--bootstrap", source="flag")
    timeout_ms = keys.QUORUM_REQUEST_TIMEOUT_MS.parse(
        options.timeout, name="--timeout", source="flag"
    )
    match options.command:
        case "status":
            return commands.status(bootstrap, output, timeout_ms=timeout_ms)
        case "add":
            address = _address(options.address)
            return commands.add(address, bootstrap, output, timeout_ms=timeout_ms)
        case "remove":
            return commands.remove(options.voter, bootstrap, output, timeout_ms=timeout_ms)
        case _:
            values = [value.encode() for value in options.values]
            return commands.propose(values, bootstrap, output, timeout_ms=timeout_ms)


def _form(options: argparse.Namespace, output: Output) -> int:
    if not options.voter:
        return commands.form(_config(options), output, restart=_restart(options))
    seats = [_seat(text) for text in options.voter]
    peers = keys.QUORUM_PEERS.parse(options.peers or "", name="--peers", source="flag")
    return commands.form_many(seats, peers, output)


def _config(options: argparse.Namespace) -> ServerConfig:
    flags: dict[str, object] = {}
    for text in options.keys:
        name, given, value = text.partition("=")
        if not given:
            raise ConfigError(f"-X {text}", hint="it looks like -X metadata.log.segment.ms=1h")
        flags[name] = value
    for flag, name in _FLAGS.items():
        value = getattr(options, flag)
        if value is not None:
            flags[name] = value
    config = load(Scope.CONTROLLER, flags=flags, environment=os.environ, file=options.config)
    return server_config(config)


def _restart(options: argparse.Namespace) -> str:
    """The command that starts the same server again."""
    words = ["run"]
    for flag in (*_FLAGS, "config"):
        value = getattr(options, flag)
        if value is not None and flag != "node_id":
            words += [f"--{flag}", value]
    if options.command == "join" and options.peers is None:
        words += ["--peers", options.seed]
    for text in options.keys:
        words += ["-X", text]
    return f"{commands.PROGRAM} {shlex.join(words)}"


def _seat(text: str) -> Seat:
    node_id, _, rest = text.partition("=")
    directory, _, endpoint = rest.rpartition("@")
    if not directory:
        raise ConfigError(f"--voter {text}", hint="it looks like 101=/data/c1@127.0.0.1:9101")
    number = keys.NODE_ID.parse(node_id, name="--voter", source="flag")
    if number < 1:
        raise ConfigError(f"--voter {text}", hint="node ids begin at 1")
    return Seat(number, directory, _address(endpoint))


def _address(text: str) -> str:
    return keys.CONTROLLER_LISTENERS.parse(text, name="address", source="argument")


def _uuid(text: str) -> Uuid:
    try:
        return Uuid.parse(text)
    except ValueError as error:
        raise ConfigError(f"--cluster-id: {error}") from None
