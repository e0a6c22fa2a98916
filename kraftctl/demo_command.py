"""`kraftctl demo`."""

import sys

import click


@click.command()
def demo() -> None:
    """Start a cluster, kill its controller and its brokers, and see what clients saw."""
    from kraftctl.demo import run_demo  # noqa: PLC0415 - gRPC takes its time to load
    from kraftctl.timeline import Timeline  # noqa: PLC0415

    try:
        sys.exit(run_demo(Timeline()))
    except KeyboardInterrupt:
        sys.exit(130)
