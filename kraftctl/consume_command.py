"""`kraftctl consume`: records to standard output."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kraftctl.exit_codes import OK, NotFound
from kraftctl.formats import parse_format, record_json
from kraftctl.session import NUMBER, Session, cluster_options, command

if TYPE_CHECKING:
    from kraftlog.consumer import Consumer
    from kraftlog.types import TopicPartition

POLL_SECONDS = 0.5


@click.command()
@click.argument("topics", nargs=-1, required=True)
@click.option(
    "--from",
    "begin",
    default="end",
    show_default=True,
    metavar="OFFSET",
    help="start, end, 1200, +10, -10, @-1h, @2026-01-31.",
)
@click.option("-n", "--count", type=NUMBER, help="Stop after so many records.")
@click.option("-e", "--exit-at-end", is_flag=True, help="Stop when all is read.")
@click.option(
    "-f",
    "--format",
    "form_text",
    default="%v",
    show_default=True,
    help="With -o table: %t %p %o %k %v %h %T %d, \\t, \\n.",
)
@click.option("--partition", "partitions", type=NUMBER, multiple=True, help="Only these.")
@cluster_options
@command
def consume(
    session: Session,
    topics: tuple[str, ...],
    *,
    begin: str,
    count: int | None,
    exit_at_end: bool,
    form_text: str,
    partitions: tuple[int, ...],
) -> int:
    """Read the records of TOPICS.

    There are no groups yet: every run reads by itself and remembers nothing.
    """
    from kraftlog.consumer import Consumer  # noqa: PLC0415 - gRPC takes its time to load

    session.output.refuse_endless(count is None and not exit_at_end, "neither -n nor --exit-at-end")
    write = parse_format(form_text)
    left = count if count is not None else -1
    with Consumer[bytes, bytes](
        bootstrap_servers=session.bootstrap,
        client_id="kraftctl",
        offset_reset="earliest",
        api_timeout=session.timeout,
    ) as consumer:
        consumer.assign(dict.fromkeys(_places(consumer, topics, partitions), begin))
        while left != 0:
            records = consumer.poll(POLL_SECONDS, max_records=left if left > 0 else None)
            for record in records:
                session.output.each(record_json(record), write(record))
            left -= len(records) if left > 0 else 0
            if not records and (session.output.is_unread or (exit_at_end and consumer.lag() == 0)):
                break
    session.output.end()
    return OK


def _places(
    consumer: "Consumer[bytes, bytes]", topics: Sequence[str], chosen: Sequence[int]
) -> "list[TopicPartition]":
    """The partitions to read: all, or the chosen ones of every topic."""
    from kraftlog.types import TopicPartition  # noqa: PLC0415

    places = []
    for topic in topics:
        known = [each.partition for each in consumer.partitions_for(topic)]
        missing = sorted(set(chosen) - set(known))
        if missing:
            raise NotFound(f"{topic} has {len(known)} partitions, and none is {missing[0]}")
        places += [TopicPartition(topic, number) for number in chosen or known]
    return places
