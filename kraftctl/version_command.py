"""`kraftctl version`."""

import platform
from importlib.metadata import version as version_of

import click

from kraftctl.exit_codes import OK
from kraftctl.session import Session, command, output_option


@click.command()
@output_option
@command
def version(session: Session) -> int:
    """The version of kraftlog, and of the Python that runs it."""
    ours, python = version_of("kraftlog"), platform.python_version()
    session.output.show({"version": ours, "python": python}, f"kraftlog {ours}, Python {python}")
    return OK
