"""`kraftctl demo`."""

import os
import sys

import click

from kraftctl.exit_codes import OK, UNHEALTHY
from kraftctl.session import Session, command, output_option


@click.command()
@click.option("--spark/--no-spark", default=False, help="A second act: Spark reads it all back.")
@output_option
@command
def demo(session: Session, *, spark: bool) -> int:
    """Start a cluster, kill its controller and its brokers, and see what clients saw.

    Exit code 3: something acknowledged was lost, duplicated or reordered.
    """
    from kraftctl.demo import run_demo  # noqa: PLC0415 - gRPC takes its time to load
    from kraftctl.demo_spark import read_by_spark, require_spark  # noqa: PLC0415
    from kraftctl.timeline import Timeline  # noqa: PLC0415

    if spark:
        require_spark(os.environ)
    timeline = Timeline(sys.stdout if session.output.is_for_people else sys.stderr)
    verdict = run_demo(timeline, read_by_spark=read_by_spark if spark else None)
    if not session.output.is_for_people:
        session.output.show(verdict.document(), "")
    return OK if verdict.is_good else UNHEALTHY
