"""`kraftctl partition ...`"""

import contextlib
import json
import shlex
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kraftctl.exit_codes import OK, Guarded
from kraftctl.moves import Plan, wait_moved
from kraftctl.node_names import node_numbers
from kraftctl.output import Json, table
from kraftctl.session import NUMBER, Session, cluster_options, command
from kraftctl.topic_commands import finish, names_of, partition_json
from kraftlog.admin_types import (
    ConfigResource,
    ConfigValue,
    PartitionDescription,
    ReplicaDescription,
)
from kraftlog.durations import to_seconds
from kraftlog.errors import ConfigError, KraftError, UnknownTopicOrPartition
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    from kraftlog.admin import Admin

PLACE = "TOPIC:PARTITION"


def place_of(text: str) -> TopicPartition:
    topic, _, number = text.rpartition(":")
    if not topic or not number.isdigit():
        raise ConfigError(f"{text!r} names no partition", hint="it looks like orders:0")
    return TopicPartition(topic, int(number))


def partitions_of(
    admin: "Admin", names: Sequence[str]
) -> dict[TopicPartition, PartitionDescription]:
    """The partitions with these names, of these topics, or all of them."""
    chosen = [place_of(name) for name in names if ":" in name]
    topics = {place.topic for place in chosen} | {name for name in names if ":" not in name}
    found = admin.describe_topics(sorted(topics) or None).raise_for_errors().ok
    for place in chosen:
        _check_there(place, len(found[place.topic].partitions))
    return {
        TopicPartition(topic.name, each.partition): each
        for topic in found.values()
        for each in topic.partitions
        if not names or topic.name in names or TopicPartition(topic.name, each.partition) in chosen
    }


def _check_there(place: TopicPartition, count: int) -> None:
    if place.partition >= count:
        raise UnknownTopicOrPartition(
            f"{place.topic} has {count} partitions, and none is {place.partition}"
        )


def _described(admin: "Admin", place: TopicPartition) -> PartitionDescription:
    topic = admin.describe_topics([place.topic]).raise_for_errors()[place.topic]
    _check_there(place, len(topic.partitions))
    return topic.partitions[place.partition]


def _replicas(
    admin: "Admin", place: TopicPartition, brokers: Sequence[int]
) -> dict[int, ReplicaDescription | KraftError]:
    """What each broker has of a partition, or why it does not say."""
    found: dict[int, ReplicaDescription | KraftError] = {}
    for broker in brokers:
        try:
            listed = admin.describe_replicas(broker, [place.topic])
        except KraftError as error:
            found[broker] = error
            continue
        mine = [each for each in listed if each.partition == place.partition]
        if mine:
            found[broker] = mine[0]
    return found


@click.command()
@click.argument("place", metavar=PLACE)
@cluster_options
@command
def describe(session: Session, place: str) -> int:
    """One partition, and what each replica has."""
    where = place_of(place)
    with session.admin() as admin:
        state = _described(admin, where)
        replicas = _replicas(admin, where, state.replicas)
    rows = [
        (broker, *_replica_row(replicas.get(broker), state, broker)) for broker in state.replicas
    ]
    headings = ("BROKER", "ROLE", "START", "HW", "END", "BYTES", "")
    isr = ",".join(map(str, state.isr)) or "empty"
    head = f"{place}  leader {state.leader}  epoch {state.leader_epoch}  isr {isr}"
    data: Json = {
        "topic": where.topic,
        "state": partition_json(state),
        "replicas": [
            dict(zip(("broker", "role", "start", "hw", "end", "bytes", "note"), row, strict=True))
            for row in rows
        ],
    }
    session.output.show(data, f"{head}\n{table(headings, rows)}")
    return OK


def _replica_row(
    replica: ReplicaDescription | KraftError | None, state: PartitionDescription, broker: int
) -> tuple[str, int, int, int, int, str]:
    role = "leader" if broker == state.leader else "in sync" if broker in state.isr else "behind"
    match replica:
        case ReplicaDescription():
            return (
                role,
                replica.log_start_offset,
                replica.high_watermark,
                replica.end_offset,
                replica.size_bytes,
                "",
            )
        case None:
            return role, -1, -1, -1, 0, "nothing there"
        case _:
            return role, -1, -1, -1, 0, replica.message


@click.command()
@click.argument("places", nargs=-1, metavar=f"[{PLACE}]...")
@click.option("--unclean", is_flag=True, help="Also a replica that may lack committed records.")
@click.option("-y", "--yes", is_flag=True, help="Really, with --unclean.")
@cluster_options
@command
def elect(session: Session, places: tuple[str, ...], *, unclean: bool, yes: bool) -> int:
    """Make the preferred replica leader; without names everywhere."""
    if unclean and not yes:
        raise Guarded("an unclean election can lose acknowledged records", hint="add --yes")
    with session.admin() as admin:
        results = admin.elect_leaders(map(place_of, places), unclean=unclean)
    done = [str(place) for place in results.ok]
    data: Json = {"elected": list(done)}
    text = f"{len(done)} elected" if done else "every preferred replica leads already"
    return finish(session.output, names_of(results.errors), text, data)


# -- moving


@click.command()
@click.argument("places", nargs=-1, metavar=f"[{PLACE}|TOPIC]...")
@click.option("--to", metavar="ID,ID,...", help="These brokers, the preferred leader first.")
@click.option("--brokers", metavar="ID,ID,...", help="Spread evenly over these brokers.")
@click.option("--rf", type=NUMBER, help="With --brokers: so many replicas.")
@click.option("--plan", "plan_file", metavar="FILE", help="A plan, or the undo of one.")
@click.option("--undo", "undo_file", metavar="FILE", help="Where to save what is now.")
@click.option("--cancel", is_flag=True, help="Stop moves that go on.")
@click.option("--status", is_flag=True, help="The moves that go on.")
@click.option("--wait/--no-wait", default=True, help="Wait until all have moved.")
@click.option("--within", default="10m", show_default=True, help="Stop waiting after that long.")
@click.option("--batch", type=click.IntRange(1), metavar="N", help="So many partitions at a time.")
@click.option("--throttle", type=click.IntRange(1), metavar="BYTES/S", help="Per broker.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@cluster_options
@command
def reassign(
    session: Session,
    places: tuple[str, ...],
    *,
    to: str | None,
    brokers: str | None,
    rf: int | None,
    plan_file: str | None,
    undo_file: str | None,
    cancel: bool,
    status: bool,
    wait: bool,
    within: str,
    batch: int | None,
    throttle: int | None,
    dry_run: bool,
) -> int:
    """Move partitions to other brokers. Shows the plan, and saves the one that undoes it."""
    with session.admin() as admin:
        if status or cancel:
            return _ongoing(session, admin, cancel=cancel)
        before = _assignments(admin, places)
        plan = _plan(before, to=to, brokers=brokers, rf=rf, plan_file=plan_file)
        show_plan(session, before, plan)
        if dry_run:
            session.output.show(_plan_json(plan), "nothing was changed")
            return OK
        if throttle and not wait:
            raise ConfigError("--throttle and --no-wait", hint="somebody has to end the limit")
        pace = Pace(wait, to_seconds(within, "--within"), batch, throttle)
        undo = save_undo(session, before, plan, undo_file)
        move(session, admin, plan, pace)
        say_undo(session, undo)
        session.output.show(_plan_json(plan), "moved" if wait else "moving")
        return OK


def _ongoing(session: Session, admin: "Admin", *, cancel: bool) -> int:
    moves = admin.list_reassignments()
    if cancel and moves:
        admin.reassign(dict.fromkeys(moves)).raise_for_errors()
    rows = [(place, each.replicas, each.adding, each.removing) for place, each in moves.items()]
    data: Json = [
        {
            "topic": place.topic,
            "partition": place.partition,
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
        }
        for place, each in moves.items()
    ]
    verb = "cancelled" if cancel else "moving"
    text = table(("PARTITION", "REPLICAS", "ADDING", "REMOVING"), rows)
    session.output.show(data, f"{len(rows)} {verb}\n{text}" if rows else "nothing moves")
    return OK


def _assignments(admin: "Admin", names: Sequence[str]) -> dict[TopicPartition, tuple[int, ...]]:
    return {place: each.replicas for place, each in partitions_of(admin, names).items()}


def _plan(
    before: Plan,
    *,
    to: str | None,
    brokers: str | None,
    rf: int | None,
    plan_file: str | None,
) -> dict[TopicPartition, tuple[int, ...]]:
    if sum(given is not None for given in (to, brokers, plan_file)) != 1:
        raise ConfigError("where to?", hint="say one of --to, --brokers and --plan")
    if plan_file is not None:
        plan = _read_plan(plan_file)
    elif to is not None:
        plan = dict.fromkeys(before, node_numbers(to, "--to"))
    else:
        plan = spread(before, node_numbers(brokers or "", "--brokers"), rf)
    return {place: target for place, target in plan.items() if before.get(place) != target}


def spread(
    before: Plan, brokers: tuple[int, ...], rf: int | None
) -> dict[TopicPartition, tuple[int, ...]]:
    """Leaders round robin over the brokers, followers at a distance that grows with each round."""
    plan = {}
    for number, place in enumerate(sorted(before)):
        count = rf or len(before[place])
        if count > len(brokers):
            raise ConfigError(f"{count} replicas on {len(brokers)} brokers", hint="name more")
        first, shift = number % len(brokers), number // len(brokers)
        rest = (
            [
                (first + 1 + (shift + step) % (len(brokers) - 1)) % len(brokers)
                for step in range(count - 1)
            ]
            if count > 1
            else []
        )
        plan[place] = tuple(brokers[index] for index in (first, *rest))
    return plan


def show_plan(session: Session, before: Plan, plan: Plan) -> None:
    rows = [(place, before.get(place, ()), target) for place, target in plan.items()]
    session.output.note(table(("PARTITION", "FROM", "TO"), rows) if rows else "nothing to move")


def _plan_json(plan: Plan) -> Json:
    return [
        {"topic": place.topic, "partition": place.partition, "replicas": list(target)}
        for place, target in plan.items()
    ]


def save_undo(session: Session, before: Plan, plan: Plan, path: str | None = None) -> str:
    """Write the present replicas of what a plan moves; returns where. Nothing moves: nowhere."""
    if not plan:
        return ""
    path = path or session.places.new_undo("reassign")
    undo = {place: before[place] for place in plan if place in before}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"partitions": _plan_json(undo)}, file, indent=1)
    return path


def say_undo(session: Session, path: str) -> None:
    if path:
        session.output.note(f"undo: kraftctl partition reassign --plan {shlex.quote(path)}")


def _read_plan(path: str) -> dict[TopicPartition, tuple[int, ...]]:
    try:
        with open(path, encoding="utf-8") as file:
            listed = json.load(file)["partitions"]
        return {
            TopicPartition(str(each["topic"]), int(each["partition"])): tuple(
                int(broker) for broker in each["replicas"]
            )
            for each in listed
        }
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no plan: {error!r}", hint="--undo writes one") from None


def move(session: Session, admin: "Admin", plan: Plan, pace: "Pace") -> None:
    """Carry a plan out, so many at a time, and wait for each part; a refusal ends it."""
    places = list(plan)
    size = pace.batch or len(places) or 1
    parts = [places[at : at + size] for at in range(0, len(places), size)]
    deadline = time.monotonic() + pace.within
    with throttled(admin, {place.topic for place in places}, pace.throttle):
        for part in parts:
            admin.reassign({place: plan[place] for place in part}).raise_for_errors()
            if pace.wait:
                wait_moved(session, admin, part, deadline)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a plan is carried out."""

    wait: bool = True
    within: float = 600.0
    batch: int | None = None
    throttle: int | None = None
    """Bytes per second and broker."""


_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@contextlib.contextmanager
def throttled(admin: "Admin", topics: Collection[str], rate: int | None) -> Iterator[None]:
    """Limit what moving costs the brokers; the limit goes when the work is over."""
    if rate is None:
        yield
        return
    on: dict[ConfigResource, dict[str, ConfigValue]] = {
        ConfigResource.broker(): dict.fromkeys(_RATES, str(rate)),
        **{ConfigResource.topic(topic): dict.fromkeys(_REPLICAS, "*") for topic in topics},
    }
    admin.alter_configs(on).raise_for_errors()
    try:
        yield
    finally:
        off = {resource: dict[str, ConfigValue].fromkeys(keys) for resource, keys in on.items()}
        admin.alter_configs(off).raise_for_errors()
