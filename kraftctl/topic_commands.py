"""`kraftctl topic ...`"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import click

from kraftctl.exit_codes import FAILED, OK, Guarded, exit_code
from kraftctl.output import Json, Output, table
from kraftctl.session import NUMBER, Session, cluster_options, command
from kraftlog.admin_types import ConfigResource, NewTopic, PartitionDescription, TopicDescription
from kraftlog.errors import ConfigError, KraftError
from kraftlog.types import TopicPartition

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
@cluster_options
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
@click.option("--at", "place", default="", metavar="OFFSET", help="start, end, @-1h, @2026-01-31.")
@cluster_options
@command
def offsets(session: Session, topic: str, place: str) -> int:
    """Where partitions begin and end, or which offset a time is."""
    with session.admin() as admin:
        places = [
            TopicPartition(topic, each.partition)
            for each in admin.describe_topics([topic]).raise_for_errors()[topic].partitions
        ]
        wanted = [place] if place else ["start", "end"]
        found = {
            each: admin.list_offsets(dict.fromkeys(places, each)).raise_for_errors()
            for each in wanted
        }
    rows = [(where.partition, *(found[each][where].offset for each in wanted)) for where in places]
    headings = ("PARTITION", *(each.upper() for each in wanted))
    data: Json = [{"partition": row[0], **dict(zip(wanted, row[1:], strict=True))} for row in rows]
    session.output.show(data, table(headings, rows))
    return OK


@click.command()
@click.argument("topic")
@click.option("--before", required=True, metavar="OFFSET", help="All below goes; end: everything.")
@click.option("--partition", "partitions", type=NUMBER, multiple=True, help="Only these.")
@click.option("-y", "--yes", is_flag=True, help="Really.")
@cluster_options
@command
def trim(
    session: Session, topic: str, *, before: str, partitions: tuple[int, ...], yes: bool
) -> int:
    """Delete the oldest records of a topic."""
    if before != "end" and not before.isdigit():
        raise ConfigError(f"--before {before}", hint="an offset, or end")
    if not yes:
        raise Guarded(f"this deletes records of {topic}", hint="add --yes")
    with session.admin() as admin:
        described = admin.describe_topics([topic]).raise_for_errors()[topic]
        chosen = partitions or [each.partition for each in described.partitions]
        where = {
            TopicPartition(topic, each): "end" if before == "end" else int(before)
            for each in chosen
        }
        starts = admin.delete_records(where).raise_for_errors()  # type: ignore[arg-type] # "end"
    rows = [(place.partition, start) for place, start in starts.ok.items()]
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
