"""`kraftctl consume`: records to standard output."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from kraftctl.exit_codes import OK, NotFound
from kraftctl.formats import Record, parse_format, record_json
from kraftctl.output import Output
from kraftctl.session import NUMBER, Session, cluster_options, command

if TYPE_CHECKING:
    from kraftlog.consumer import Consumer
    from kraftlog.offsets import OffsetRange
    from kraftlog.types import TopicPartition

POLL_SECONDS = 0.5


@click.command()
@click.argument("topics", nargs=-1, required=True)
@click.option(
    "--from",
    "begin",
    default="end",
    show_default=True,
    metavar="SPEC",
    help="Where to begin: start, end, 1200, +10, -10, @-1h, @2026-01-31; or a range, which is also"
    " where to stop: 100:200, :end, @-1h:@now; or each partition by itself: 0=100,1=-5:end.",
)
@click.option("-n", "--count", type=NUMBER, help="Stop after so many records.")
@click.option("-e", "--exit-at-end", is_flag=True, help="Stop behind what is there now.")
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

    A range stops at its end, without that itself. An end that is a time, or counts from an end of
    the partition, is what it was when the command began; an end that is a number is waited for,
    unless --exit-at-end is said.

    There are no groups yet: every run reads by itself and remembers nothing.
    """
    from kraftlog.consumer import Consumer  # noqa: PLC0415 - gRPC takes its time to load
    from kraftlog.offsets import OffsetRange, PerPartition  # noqa: PLC0415

    output = session.output
    spec = PerPartition.parse(begin, OffsetRange.parse)
    write = parse_format(form_text)
    has_end = exit_at_end or count is not None or all(each.end for each in spec.values)
    output.refuse_endless(not has_end, "neither -n, nor a range, nor --exit-at-end")
    with Consumer[bytes, bytes](
        bootstrap_servers=session.bootstrap,
        client_id="kraftctl",
        offset_reset="earliest",
        api_timeout=session.timeout,
    ) as consumer:
        ranges = spec.of(_places(consumer, topics, partitions))
        ends = _ends(session, ranges, exit_at_end=exit_at_end)
        consumer.assign({place: each.first for place, each in ranges.items()})
        for record in islice(_records(consumer, ends, output), count):
            output.each(record_json(record), write(record))
    output.end()
    return OK


def _ends(
    session: Session, ranges: "Mapping[TopicPartition, OffsetRange]", *, exit_at_end: bool
) -> "dict[TopicPartition, int]":
    from kraftctl.offset_lookup import check_starts, ends_of, is_number  # noqa: PLC0415

    asks = exit_at_end or any(each.end or is_number(each.first) for each in ranges.values())
    if not asks:
        return {}
    with session.admin() as admin:
        for warning in check_starts(admin, ranges):
            session.output.warn(warning)
        return ends_of(admin, ranges, exit_at_end=exit_at_end)


def _records(
    consumer: "Consumer[bytes, bytes]", ends: "Mapping[TopicPartition, int]", output: Output
) -> "Iterator[Record]":
    """Until all partitions that have an end are read up to it, and no other is left."""
    from kraftlog.types import TopicPartition  # noqa: PLC0415

    is_endless = len(ends) < len(consumer.assignment())
    left = dict(ends)
    while True:
        for place in [each for each, end in left.items() if consumer.position(each) >= end]:
            consumer.pause(place)
            del left[place]
        if not left and not is_endless:
            return
        records = consumer.poll(POLL_SECONDS)
        for record in records:
            end = ends.get(TopicPartition(record.topic, record.partition))
            if end is None or record.offset < end:
                yield record
        if not records and output.is_unread:
            return


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
