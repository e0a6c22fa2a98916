"""The arguments of `python -m brokers`, and its exit codes.

0 ok   1 the operation failed   2 usage   4 no controller answered in time   5 not formatted
6 conflict: the directory is in use, or another broker with this id is alive
70 a broken invariant   74 a failed fsync   130 interrupted
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brokers.config import BrokerConfig, broker_config
from brokers.running import INTERRUPTED, OK, format_directories, serve
from kraftlog import broker_keys
from kraftlog import config_keys as keys
from kraftlog.config import load
from kraftlog.config_keys import Scope
from kraftlog.errors import (
    AmbiguousError,
    ConfigError,
    DuplicateBrokerRegistration,
    KraftError,
    LogDirLocked,
    RetriableError,
)
from kraftlog.logs import start_logging

PROGRAM = "python -m brokers"

SCHEMA = 1

FAILED = 1
USAGE = 2
UNREACHABLE = 4
CONFLICT = 6

# Flags that stand for a key.
_FLAGS = {
    "log_dirs": keys.LOG_DIRS.names[Scope.BROKER],
    "metadata_dir": broker_keys.METADATA_LOG_DIR.names[Scope.BROKER],
    "node_id": keys.NODE_ID.names[Scope.BROKER],
    "cluster_id": broker_keys.CLUSTER_ID.names[Scope.BROKER],
    "listen": broker_keys.BROKER_LISTENERS.names[Scope.BROKER],
    "advertise": broker_keys.BROKER_ADVERTISED_LISTENERS.names[Scope.BROKER],
    "peers": keys.QUORUM_PEERS.names[Scope.BROKER],
    "rack": broker_keys.BROKER_RACK.names[Scope.BROKER],
    "profile": keys.TIMING_PROFILE.names[Scope.BROKER],
    "metrics": keys.METRICS_LISTENERS.names[Scope.BROKER],
}


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    output = _Output(options.command, as_json=options.output == "json")
    try:
        start_logging(os.environ, verbose=options.verbose)
        return _run(options, output)
    except KraftError as error:
        output.fail(error)
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(options: argparse.Namespace, output: "_Output") -> int:
    config = _config(options)
    if options.command == "format":
        output.show(format_directories(config))
        return OK
    return serve(config, output.show)


def exit_code(error: KraftError) -> int:
    match error:
        case ConfigError():
            return USAGE
        case LogDirLocked() | DuplicateBrokerRegistration():
            return CONFLICT
        case AmbiguousError() | RetriableError():
            return UNREACHABLE
        case _:
            return FAILED


@dataclass(frozen=True, slots=True)
class _Output:
    """Data on stdout, as lines for people or JSON for programs; the rest on stderr."""

    command: str
    as_json: bool

    def show(self, facts: Mapping[str, object]) -> None:
        if self.as_json:
            self._write_json(dict(facts), None)
        else:
            sys.stdout.write("".join(f"{name:<13}{value}\n" for name, value in facts.items()))
            sys.stdout.flush()

    def fail(self, error: KraftError) -> None:
        if self.as_json:
            facts = {
                "code": error.code_name,
                "message": error.message,
                "hint": error.hint,
                "retriable": error.retriable,
            }
            self._write_json(None, facts)
        else:
            sys.stderr.write(f"error: {error.message}\n")
            if error.hint:
                sys.stderr.write(f"hint:  {error.hint}\n")

    def _write_json(
        self, data: Mapping[str, object] | None, error: Mapping[str, object] | None
    ) -> None:
        document = {
            "command": self.command,
            "schema": SCHEMA,
            "data": data,
            "warnings": [],
            "error": error,
        }
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()


# -- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="A broker: partition logs, their replication, and the requests of clients.",
        epilog="Exit codes: 0 ok, 1 failed, 2 usage, 4 no controller answered in time, 6 conflict,"
        " 70 broken invariant, 74 failed fsync, 130 interrupted.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = [_server_options()]
    subparsers.add_parser(
        "run",
        parents=shared,
        help="run a broker; new directories are formatted if the cluster id is given",
    )
    subparsers.add_parser(
        "format", parents=shared, help="make new directories those of a broker of a cluster"
    )
    return parser


def _server_options() -> argparse.ArgumentParser:
    server = argparse.ArgumentParser(add_help=False)
    server.add_argument("--log-dirs", metavar="DIR,...", help="where the logs are (log.dirs)")
    server.add_argument(
        "--metadata-dir",
        metavar="DIR",
        help="where the metadata log is, if not in the first of them (metadata.log.dir)",
    )
    server.add_argument(
        "--node-id", metavar="N", help="1 or more; without it the controller gives one (node.id)"
    )
    server.add_argument("--cluster-id", metavar="ID", help="for new directories (cluster.id)")
    server.add_argument("--listen", metavar="HOST:PORT", help="where to listen (listeners)")
    server.add_argument(
        "--advertise",
        metavar="HOST:PORT",
        help="where others reach it, if not there (advertised.listeners)",
    )
    server.add_argument("--peers", metavar="HOST:PORT,...", help="some controllers (quorum.peers)")
    server.add_argument("--rack", metavar="NAME", help="where it stands (broker.rack)")
    server.add_argument("--profile", choices=("kafka", "fast"), help="times (timing.profile)")
    server.add_argument("--metrics", metavar="HOST:PORT", help="for Prometheus (metrics.listeners)")
    server.add_argument("--config", metavar="FILE", help="a TOML file of dotted keys")
    server.add_argument(
        "-X", dest="keys", action="append", default=[], metavar="KEY=VALUE", help="any other key"
    )
    server.add_argument("-o", "--output", choices=("table", "json"), default="table")
    server.add_argument("-v", "--verbose", action="store_true", help="log debug lines too")
    return server


def _config(options: argparse.Namespace) -> BrokerConfig:
    flags: dict[str, object] = {}
    for text in options.keys:
        name, given, value = text.partition("=")
        if not given:
            raise ConfigError(f"-X {text}", hint="it looks like -X log.segment.bytes=1048576")
        flags[name] = value
    for flag, name in _FLAGS.items():
        value = getattr(options, flag)
        if value is not None:
            flags[name] = value
    config = load(Scope.BROKER, flags=flags, environment=os.environ, file=options.config)
    return broker_config(config)
