"""`kraftctl node ...`"""

import sys

import click

from kraftctl.exit_codes import OK, Guarded
from kraftctl.output import Json, table
from kraftctl.session import Session, cluster_options, command


@click.command()
@cluster_options
@command
def ls(session: Session) -> int:
    """All brokers, and why one is fenced."""
    with session.admin() as admin:
        cluster = admin.describe_cluster()
    rows = [
        (
            each.broker_id,
            f"{each.host}:{each.port}",
            each.rack,
            "shutting down"
            if each.in_controlled_shutdown
            else "fenced"
            if each.fenced
            else "active",
            each.leaders,
            each.replicas,
            each.heartbeat_ago_ms,
            each.fence_cause,
        )
        for each in cluster.brokers
    ]
    keys = ("broker", "address", "rack", "state", "leads", "replicas", "heartbeat_ms", "why")
    data: Json = [dict(zip(keys, row, strict=True)) for row in rows]
    headings = ("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "HEARTBEAT MS", "WHY")
    session.output.show(data, table(headings, rows))
    return OK


@click.command()
@click.argument("broker", type=int)
@cluster_options
@command
def fence(session: Session, broker: int) -> int:
    """Take a broker out of service: others lead, and it serves nobody."""
    with session.admin() as admin:
        admin.fence_broker(broker)
    session.output.show(
        {"broker": broker, "fenced": True},
        f"broker {broker} is fenced; undo: kraftctl node unfence {broker}",
    )
    return OK


@click.command()
@click.argument("broker", type=int)
@cluster_options
@command
def unfence(session: Session, broker: int) -> int:
    """Let a broker back in that was fenced by hand."""
    with session.admin() as admin:
        admin.fence_broker(broker, fenced=False)
    session.output.show(
        {"broker": broker, "fenced": False}, f"broker {broker} may come back by its heartbeats"
    )
    return OK


@click.command()
@click.argument("broker", type=int)
@click.option("-y", "--yes", is_flag=True, help="Although it still has replicas.")
@cluster_options
@command
def decommission(session: Session, broker: int, *, yes: bool) -> int:
    """Forget a broker for good."""
    with session.admin() as admin:
        found = [each for each in admin.describe_cluster().brokers if each.broker_id == broker]
        if found and found[0].replicas and not yes:
            raise Guarded(
                f"broker {broker} has {found[0].replicas} replicas",
                hint="move them first: kraftctl partition reassign --brokers ...; or add --yes",
            )
        admin.unregister_broker(broker)
    session.output.show({"broker": broker}, f"broker {broker} is forgotten")
    return OK


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--role", type=click.Choice(["controller", "broker"]), required=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(role: str, arguments: tuple[str, ...]) -> None:
    """Run a controller or a broker, as an init system starts it.

    Everything behind --role goes to it: --config FILE, -X KEY=VALUE and the flags of `python -m
    quorum run` or `python -m brokers run`.
    """
    if role == "controller":
        from quorum.cli import main as controller  # noqa: PLC0415 - loads the server

        sys.exit(controller(["run", *arguments]))
    from brokers.cli import main as broker  # noqa: PLC0415 - loads the server

    sys.exit(broker(["run", *arguments]))
