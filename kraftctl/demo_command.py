"""`kraftctl demo`."""

import os
import sys

import click

from kraftctl.exit_codes import INTERRUPTED, exit_code
from kraftctl.output import Output
from kraftlog.errors import KraftError


@click.command()
@click.option("--spark/--no-spark", default=False, help="A second act: Spark reads it all back.")
def demo(spark: bool) -> None:
    """Start a cluster, kill its controller and its brokers, and see what clients saw."""
    from kraftctl.demo import run_demo  # noqa: PLC0415 - gRPC takes its time to load
    from kraftctl.demo_spark import read_by_spark, require_spark  # noqa: PLC0415
    from kraftctl.timeline import Timeline  # noqa: PLC0415

    try:
        if spark:
            require_spark(os.environ)
        sys.exit(run_demo(Timeline(), read_by_spark=read_by_spark if spark else None))
    except KraftError as error:
        Output("demo").fail(error)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
