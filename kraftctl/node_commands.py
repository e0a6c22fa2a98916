"""`kraftctl node ...`"""

from collections.abc import Mapping

import click

from kraftctl.controllers import beliefs
from kraftctl.diagnosis import electorate
from kraftctl.exit_codes import OK, Guarded, NotFound
from kraftctl.moves import refuse_stuck, states_of
from kraftctl.node_names import NODE
from kraftctl.output import Json, table
from kraftctl.partition_commands import Pace, move, save_undo, say_undo, show_plan
from kraftctl.session import Session, cluster_options, command
from kraftlog.admin_types import BrokerDescription, QuorumDescription
from kraftlog.durations import to_seconds
from kraftlog.errors import NetworkError
from kraftlog.types import TopicPartition


def _state(broker: BrokerDescription) -> str:
    if broker.in_controlled_shutdown:
        return "shutting down"
    return "fenced" if broker.fenced else "active"


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
            _state(each),
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
@click.argument("broker", type=NODE)
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
@click.argument("broker", type=NODE)
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
@click.argument("broker", type=NODE)
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


@click.command()
@click.argument("node", type=NODE)
@cluster_options
@command
def info(session: Session, node: int) -> int:
    """One node: a broker, or a controller."""
    found = _controller_info(session, node) or _broker_info(session, node)
    if found is None:
        raise NotFound(f"no node has id {node}", hint="kraftctl node ls, kraftctl quorum status")
    width = max(map(len, found))
    lines = (f"{key:<{width}}  {_plain(value)}" for key, value in found.items())
    session.output.show(found, "\n".join(lines))
    return OK


def _plain(value: Json) -> str:
    return "-" if value is None or value == "" else str(value)


def _controller_info(session: Session, node: int) -> dict[str, Json] | None:
    """Of whichever node it is, controllers know more: they are there where no broker is."""
    found = beliefs(session)
    for address, belief in found.items():
        if isinstance(belief, QuorumDescription) and belief.node.node_id == node:
            return {
                "node": node,
                "role": "controller",
                "address": address,
                "directory_id": str(belief.node.directory_id),
                "state": belief.role,
                "epoch": belief.epoch,
                "leader": belief.leader.node_id if belief.leader else None,
                "end_offset": belief.end_offset,
                "high_watermark": belief.high_watermark,
                "log_start_offset": belief.log_start_offset,
            }
    silent = [each for each in electorate(found).silent if each.node_id == node]
    if silent:
        raise NetworkError(
            f"controller {node} at {silent[0].endpoint} does not answer",
            hint="kraftctl quorum status shows what the others believe",
        )
    return None


def _broker_info(session: Session, node: int) -> dict[str, Json] | None:
    with session.admin() as admin:
        cluster = admin.describe_cluster()
    for each in cluster.brokers:
        if each.broker_id == node:
            return {
                "node": node,
                "role": "broker",
                "address": f"{each.host}:{each.port}",
                "rack": each.rack,
                "state": _state(each),
                "why": each.fence_cause,
                "broker_epoch": each.broker_epoch,
                "incarnation_id": str(each.incarnation_id),
                "heartbeat_ms": each.heartbeat_ago_ms,
                "metadata_lag": max(0, cluster.offset - each.applied_offset),
                "leads": each.leaders,
                "replicas": each.replicas,
            }
    return None


# -- emptying a broker


@click.command()
@click.argument("broker", type=NODE)
@click.option("--within", default="10m", show_default=True, help="Stop waiting after that long.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@cluster_options
@command
def drain(session: Session, broker: int, *, within: str, dry_run: bool) -> int:
    """Move all replicas off a broker, to those that have fewest."""
    with session.admin() as admin:
        cluster = admin.describe_cluster()
        if broker not in {each.broker_id for each in cluster.brokers}:
            raise NotFound(f"there is no broker {broker}", hint="kraftctl node ls shows them")
        loads = {
            each.broker_id: each.replicas
            for each in cluster.brokers
            if each.broker_id != broker and not each.fenced and not each.in_controlled_shutdown
        }
        states = states_of(admin, admin.list_topics())
        before = {place: each.replicas for place, each in states.items()}
        plan = drained(before, broker, loads)
        show_plan(session, before, plan)
        if not dry_run:
            refuse_stuck(plan, states, cluster)
            say_undo(session, save_undo(session, before, plan))
            move(session, admin, plan, Pace(within=to_seconds(within, "--within")))
    moved = [str(place) for place in plan]
    data: Json = {"broker": broker, "moved": [] if dry_run else list(moved), "dry_run": dry_run}
    then = f"; next: kraftctl node decommission {broker}"
    text = "nothing was changed" if dry_run else f"broker {broker} has no replica any more{then}"
    session.output.show(data, text)
    return OK


def drained(
    before: Mapping[TopicPartition, tuple[int, ...]], broker: int, loads: Mapping[int, int]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Each replica on the broker goes to the one with fewest that has none of the partition."""
    counts = dict(loads)
    plan = {}
    for place, replicas in sorted(before.items()):
        if broker not in replicas:
            continue
        fit = [each for each in counts if each not in replicas]
        if not fit:
            raise Guarded(
                f"{place} has {len(replicas)} replicas, and no other broker is there to take one",
                hint="start another: kraftctl up -n N; or fewer replicas:"
                " kraftctl partition reassign --brokers ... --rf N",
            )
        heir = min(fit, key=lambda each: (counts[each], each))
        counts[heir] += 1
        plan[place] = tuple(heir if each == broker else each for each in replicas)
    return plan
