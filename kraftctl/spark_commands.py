"""`kraftctl spark`: what Spark needs on this machine."""

import os
import shlex

import click

from kraftctl.session import Session, command, output_option


@click.command()
@click.option("--master", default="local[*]", show_default=True, help="Where Spark will run.")
@output_option
@command
def env(session: Session, master: str) -> None:
    """Variables for Spark: a Java that it can use, this Python, this machine's address.

    \b
    eval "$(kraftctl spark env)"
    """
    from spark_connector.session import spark_environment  # noqa: PLC0415 - only this one needs it

    found = spark_environment(os.environ, master=master)
    lines = (f"export {name}={shlex.quote(value)}" for name, value in found.items())
    session.output.show(found, "\n".join(lines))
