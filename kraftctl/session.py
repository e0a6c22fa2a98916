"""What every command has: an output, the cluster it means, and the options that all share."""

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import click
from click.decorators import FC

from kraftctl.control import is_listening
from kraftctl.exit_codes import FAILED, INTERRUPTED, OK, exit_code
from kraftctl.hints import way_out
from kraftctl.output import FORMATS, Output
from kraftctl.places import Places, bootstrap_of, controllers_of
from kraftlog.errors import ConfigError, KraftError

if TYPE_CHECKING:
    from kraftlog.admin import Admin

P = ParamSpec("P")


class _Number(click.IntRange):
    name = "whole number"


NUMBER = _Number(0, 2**31 - 1)
"""The id of a node, a partition, or how many: as large as a message can say it."""


@dataclass(slots=True)
class Session:
    """One run of one command."""

    output: Output
    places: Places
    timeout: str
    _bootstrap: str | None = None
    _profile: str | None = None

    @property
    def bootstrap(self) -> str:
        return bootstrap_of(
            self.places, os.environ, bootstrap=self._bootstrap, profile=self._profile
        )

    @property
    def local_controllers(self) -> tuple[str, ...]:
        """Where the controllers of a local cluster listen; empty: it is not one that `up` made."""
        return controllers_of(
            self.places, os.environ, bootstrap=self._bootstrap, profile=self._profile
        )

    @property
    def down(self) -> str | None:
        """The local cluster that is meant, if it does not run."""
        try:
            is_local = bool(self.local_controllers)
            name = self.places.current if is_local else None
            is_down = name is not None and not is_listening(self.places.cluster(name))
        except (KraftError, OSError):
            return None  # not to be known
        return name if is_down else None

    def admin(self) -> "Admin":
        """To be used in a with statement."""
        from kraftlog.admin import Admin  # noqa: PLC0415 - gRPC takes its time to load

        return Admin(
            self.bootstrap,
            client_id="kraftctl",
            request_timeout=self.timeout,
            api_timeout=self.timeout,
        )


def cluster_options(function: FC) -> FC:
    """The options of commands that ask a cluster."""
    return _of_clusters(function, "-p", "--profile")


def cluster_options_but_p(function: FC) -> FC:
    """The same where -p means something else."""
    return _of_clusters(function, "--profile")


def _of_clusters(function: FC, *profile: str) -> FC:
    for option in (
        click.option(
            "--timeout",
            default="10s",
            envvar="KRAFTCTL_TIMEOUT",
            help="How long to wait for answers.",
        ),
        click.option(*profile, metavar="NAME", help="A cluster of the config file."),
        click.option("-b", "--bootstrap", metavar="HOST:PORT,...", help="Some brokers."),
    ):
        function = option(function)
    return output_option(function)


def output_option(function: FC) -> FC:
    """How to print: what every command has."""
    for option in (
        click.option("-q", "--quiet", is_flag=True, help="No progress, only results and errors."),
        click.option("--no-color", is_flag=True, help="As with NO_COLOR in the environment."),
        click.option(
            "-o",
            "--output",
            "form",
            type=click.Choice(FORMATS),
            default="table",
            help="How to print.",
        ),
    ):
        function = option(function)
    return function


def command(function: Callable[Concatenate[Session, P], int | None]) -> Callable[P, None]:
    """Give a command its session, and turn what it ends with into an exit code."""

    @functools.wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> None:
        session = _session(options)
        try:
            _check_timeout(session.timeout)
            code = function(session, *args, **options)
        except KraftError as error:
            error.hint = way_out(error, down=session.down)
            session.output.fail(error)
            code = exit_code(error)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BrokenPipeError:  # whoever read our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = OK
        except OSError as error:  # of files: what the network does is a KraftError
            session.output.fail(file_error(error))
            code = FAILED
        sys.exit(code or OK)

    return run


def _check_timeout(text: str) -> None:
    from kraftlog.durations import to_seconds  # noqa: PLC0415

    if to_seconds(text, "--timeout") <= 0:
        raise ConfigError(f"--timeout {text}", hint="it looks like --timeout 5s")


def file_error(error: OSError) -> KraftError:
    """What the operating system has against it, in one sentence."""
    where = f"{error.filename}: " if error.filename else ""
    hint = f"who may? ls -ld {error.filename}" if isinstance(error, PermissionError) else ""
    return KraftError(f"{where}{error.strerror or error}", hint=hint)


def _session(options: dict[str, object]) -> Session:
    """Takes the shared options out; the rest belongs to the command."""

    def take(name: str) -> str | None:
        value = options.pop(name, None)
        return None if value is None else str(value)

    path = click.get_current_context().command_path.split(" ", 1)[-1]
    quiet, no_color = bool(options.pop("quiet", False)), bool(options.pop("no_color", False))
    if no_color:
        os.environ["NO_COLOR"] = "1"  # for whatever we start, too
    output = Output(path, form=take("form") or "table", quiet=quiet)
    return Session(
        output,
        Places.of(os.environ),
        take("timeout") or "10s",
        take("bootstrap"),
        take("profile"),
    )
