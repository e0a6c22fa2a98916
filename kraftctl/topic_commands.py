"""`kraftctl topic ...`"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from kraftctl.exit_codes import FAILED, OK, Guarded, exit_code
from kraftctl.offset_lookup import locate
from kraftctl.output import Json, Output, table
from kraftctl.session import (
    NUMBER,
    Session,
    cluster_options,
    cluster_options_but_p,
    command,
)
from kraftlog.admin_types import ConfigResource, NewTopic, PartitionDescription, TopicDescription
from kraftlog.errors import ConfigError, KraftError
from kraftlog.offsets import Offset, OffsetRange, PerPartition
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    from kraftlog.admin import Admin

K = TypeVar("K")


def pairs(texts: Sequence[str], flag: str, example: str = "retention.ms=1h") -> dict[str, str]:
    """KEY=VALUE, as flags have them."""
    found = {}
    for text in texts:
        key, given, value = text.partition("=")
        if not given:
            shown = f"{flag} {example}".strip()
            raise ConfigError(f"{flag} {text}".strip(), hint=f"it looks like {shown}")
        found[key] = value
    return found


def finish(output: Output, errors: Mapping[str, KraftError], done: str, data: Json) -> int:
    """Say what was done, and what was not and why."""
    if not errors:
        output.show(data, done)
        return OK
    if len(errors) == 1:
        raise next(iter(errors.values()))
    for name, error in errors.items():
        output.warnings.append(f"{name}: {error}")
    output.show(data, done)
    return max(map(exit_code, errors.values()), default=FAILED)


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def names_of(errors: Mapping[K, KraftError]) -> dict[str, KraftError]:
    return {str(name): error for name, error in errors.items()}


@click.command()
@click.argument("topics", nargs=-1, required=True)
@click.option("-p", "--partitions", type=NUMBER, help="How many; else num.partitions.")
@click.option("-r", "--replication-factor", type=NUMBER, help="Else default.replication.factor.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE")
@click.option("--dry-run", is_flag=True, help="Judge, and create nothing.")
@click.option("--if-not-exists", is_flag=True, help="A topic that is there is no error.")
@cluster_options_but_p
@command
def create(
    session: Session,
    topics: tuple[str, ...],
    *,
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    dry_run: bool,
    if_not_exists: bool,
) -> int:
    """Create topics."""
    values = pairs(configs, "-c")
    with session.admin() as admin:
        there = set(admin.list_topics()) if if_not_exists else set()
        new = [
            NewTopic(name, partitions, replication_factor, configs=values)
            for name in topics
            if name not in there
        ]
        results = admin.create_topics(new, validate_only=dry_run)
    created = results.ok
    rows = [(each.name, each.partitions, each.replication_factor) for each in created.values()]
    verb = "would be created" if dry_run else "created"
    data: Json = [
        {"name": name, "partitions": count, "replication_factor": factor}
        for name, count, factor in rows
    ]
    lines = [
        f"{name} {verb}: {counted(p, 'partition')}, {counted(f, 'replica')} each"
        for name, p, f in rows
    ]
    lines += [f"{name} is there already" for name in topics if name in there]
    text = "\n".join(lines)
    return finish(session.output, names_of(results.errors), text, data)


@click.command()
@cluster_options
@command
def ls(session: Session) -> int:
    """All topics."""
    with session.admin() as admin:
        found = admin.describe_topics().ok
    rows = [
        (
            topic.name,
            len(topic.partitions),
            len(topic.partitions[0].replicas) if topic.partitions else 0,
            sum(each.leader < 0 for each in topic.partitions),
            sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        )
        for topic in sorted(found.values(), key=lambda each: each.name)
    ]
    data: Json = [
        {
            "name": name,
            "partitions": partitions,
            "replication_factor": factor,
            "offline": offline,
            "under_replicated": under,
        }
        for name, partitions, factor, offline, under in rows
    ]
    headings = ("TOPIC", "PARTITIONS", "RF", "OFFLINE", "UNDER-REPLICATED")
    session.output.show(data, table(headings, rows))
    return OK


@click.command()
@click.argument("topics", nargs=-1, required=True)
@cluster_options
@command
def describe(session: Session, topics: tuple[str, ...]) -> int:
    """Partitions, replicas and configs of topics."""
    with session.admin() as admin:
        results = admin.describe_topics(topics)
    found = list(results.ok.values())
    text = "\n\n".join(map(_describe, found))
    data: Json = [topic_json(topic) for topic in found]
    return finish(session.output, names_of(results.errors), text, data)


def topic_json(topic: TopicDescription) -> Json:
    return {
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "configs": dict(topic.configs),
        "partitions": [partition_json(each) for each in topic.partitions],
    }


def partition_json(partition: PartitionDescription) -> Json:
    return {
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.elr),
        "adding": list(partition.adding),
        "removing": list(partition.removing),
    }


def _describe(topic: TopicDescription) -> str:
    configs = " ".join(f"{key}={value}" for key, value in sorted(topic.configs.items()))
    head = f"{topic.name}  id {topic.topic_id}  {configs or 'all configs at their defaults'}"
    rows = [
        (
            each.partition,
            each.leader if each.leader >= 0 else "none",
            each.leader_epoch,
            each.replicas,
            each.isr,
            each.elr,
            "moving" if each.adding or each.removing else "",
        )
        for each in topic.partitions
    ]
    headings = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "")
    return f"{head}\n{table(headings, rows)}"


@click.command()
@click.argument("topic")
@click.option("-c", "--set", "values", multiple=True, metavar="KEY=VALUE", help="Set a config.")
@click.option("--unset", "removed", multiple=True, metavar="KEY", help="Go back to the default.")
@cluster_options
@command
def alter(
    session: Session, topic: str, *, values: tuple[str, ...], removed: tuple[str, ...]
) -> int:
    """Set or unset configs of a topic."""
    changes: dict[str, str | None] = {**pairs(values, "-c"), **dict.fromkeys(removed)}
    if not changes:
        raise ConfigError("nothing to alter", hint="say -c KEY=VALUE or --unset KEY")
    resource = ConfigResource.topic(topic)
    with session.admin() as admin:
        admin.alter_configs({resource: changes}).raise_for_errors()
    session.output.show({"topic": topic, "changed": changes}, f"{topic}: {len(changes)} changed")
    return OK


@click.command()
@click.argument("topics", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Really.")
@cluster_options
@command
def delete(session: Session, topics: tuple[str, ...], *, yes: bool) -> int:
    """Delete topics and all their records."""
    if not yes:
        raise Guarded(f"this deletes all records of {', '.join(topics)}", hint="add --yes")
    with session.admin() as admin:
        results = admin.delete_topics(topics)
    gone = sorted(results.ok)
    data: Json = {"deleted": list(gone)}
    text = "\n".join(f"{name} deleted" for name in gone)
    return finish(session.output, names_of(results.errors), text, data)


@click.command()
@click.argument("topic")
@click.option(
    "--at",
    "where",
    default="start:end",
    show_default=True,
    metavar="SPEC",
    help="end, -10, @-1h, @2026-01-31; a range of two; or each partition by itself: 0=-1,1=@-1h.",
)
@cluster_options
@command
def offsets(session: Session, topic: str, where: str) -> int:
    """Where partitions begin and end, or which offset a time is."""
    spec = PerPartition.parse(where, OffsetRange.parse)
    with session.admin() as admin:
        ranges = spec.of(_partitions_of(admin, topic))
        firsts = locate(admin, {place: each.first for place, each in ranges.items()})
        ends = locate(admin, {place: each.end for place, each in ranges.items() if each.end})
    data: Json = [
        {"partition": place.partition, "start": first, "end": ends[place]}
        if place in ends
        else {"partition": place.partition, "offset": first}
        for place, first in sorted(firsts.items())
    ]
    headings = ("PARTITION", "START", "END") if ends else ("PARTITION", "OFFSET")
    rows = [
        (place.partition, first, ends.get(place))[: len(headings)]
        for place, first in sorted(firsts.items())
    ]
    session.output.show(data, table(headings, rows))
    return OK


def _partitions_of(admin: "Admin", topic: str) -> list[TopicPartition]:
    described = admin.describe_topics([topic]).raise_for_errors()[topic]
    return [TopicPartition(topic, each.partition) for each in described.partitions]


@click.command()
@click.argument("topic")
@click.option(
    "--before",
    required=True,
    metavar="SPEC",
    help="All below goes: 1200, @-7d, -100, end (everything); or each partition by itself:"
    " 0=100,1=end.",
)
@click.option("--partition", "partitions", type=NUMBER, multiple=True, help="Only these.")
@click.option("-y", "--yes", is_flag=True, help="Really.")
@cluster_options
@command
def trim(
    session: Session, topic: str, *, before: str, partitions: tuple[int, ...], yes: bool
) -> int:
    """Delete the oldest records of a topic."""
    spec = PerPartition.parse(before, Offset.parse)
    if not yes:
        raise Guarded(f"this deletes records of {topic}", hint="add --yes")
    with session.admin() as admin:
        there = _partitions_of(admin, topic)
        chosen = [TopicPartition(topic, each) for each in partitions]
        where = locate(admin, spec.of(chosen or there))
        starts = admin.delete_records(where).raise_for_errors()
    rows = [(place.partition, start) for place, start in sorted(starts.ok.items())]
    data: Json = [{"partition": partition, "start": start} for partition, start in rows]
    session.output.show(data, table(("PARTITION", "START"), rows))
    return OK


@click.command("add-partitions")
@click.argument("topic")
@click.argument("total", type=NUMBER)
@cluster_options
@command
def add_partitions(session: Session, topic: str, total: int) -> int:
    """Give a topic more partitions; TOTAL is the new number. Keys may move to other partitions."""
    with session.admin() as admin:
        admin.create_partitions({topic: total}).raise_for_errors()
    session.output.show({"topic": topic, "partitions": total}, f"{topic}: {total} partitions")
    return OK
