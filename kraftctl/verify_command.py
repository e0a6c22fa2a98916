"""`kraftctl partition verify`: have all in-sync replicas the same records?

While records come, and go by retention, each replica is a little ahead of the others or behind. So
what they have in common is compared: from the latest start to the lowest high watermark.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from kraftctl.exit_codes import OK, UNHEALTHY
from kraftctl.output import Json, table
from kraftctl.partition_commands import PLACE, partitions_of
from kraftctl.session import Session, cluster_options, command
from kraftlog.admin_types import ConfigResource, PartitionDescription, ReplicaDescription
from kraftlog.errors import KraftError
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    from kraftlog.admin import Admin

ATTEMPTS = 3
"""Between a look and the comparison records may go that were to be compared."""

AGREE, DIFFER, UNKNOWN, COMPACTED = "agree", "differ", "unknown", "compacted"


@dataclass
class Verdict:
    """What is known of the in-sync replicas of one partition."""

    place: TopicPartition
    members: tuple[int, ...]
    is_compacted: bool
    start: int = 0
    end: int = 0
    digests: dict[int, int | None] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)

    @property
    def word(self) -> str:
        if self.is_compacted:
            return COMPACTED
        known = {digest for digest in self.digests.values() if digest is not None}
        if len(known) > 1:
            return DIFFER
        is_whole = all(self.digests.get(broker) is not None for broker in self.members)
        return AGREE if is_whole else UNKNOWN

    def json(self) -> Json:
        return {
            "topic": self.place.topic,
            "partition": self.place.partition,
            "verdict": self.word,
            "start": self.start,
            "end": self.end,
            "replicas": [
                {
                    "broker": broker,
                    "digest": _hex(self.digests.get(broker)),
                    "note": self.failures.get(broker),
                }
                for broker in self.members
            ],
        }

    def rows(self) -> Iterable[tuple[object, ...]]:
        """One for each replica, in the order of the columns of the table."""
        span = f"{self.start}:{self.end}"
        for broker in self.members:
            digest = _hex(self.digests.get(broker)) or "-"
            yield self.place, span, broker, digest, self.word, self.failures.get(broker, "")


def _hex(digest: int | None) -> str | None:
    return None if digest is None else f"{digest:08x}"


@click.command()
@click.argument("places", nargs=-1, metavar=f"[{PLACE}|TOPIC]...")
@cluster_options
@command
def verify(session: Session, places: tuple[str, ...]) -> int:
    """Do all in-sync replicas have the same committed records? (By a checksum of them.)

    Of partitions, of whole topics, or of all. Compacted topics are left out: each replica compacts
    at its own time.
    """
    with session.admin() as admin:
        verdicts = _compare(admin, partitions_of(admin, places))
    words = [each.word for each in verdicts]
    is_well = not {DIFFER, UNKNOWN}.intersection(words)
    data: Json = {"same": is_well, "partitions": [each.json() for each in verdicts]}
    rows = [row for each in verdicts for row in each.rows()]
    text = table(("PARTITION", "OFFSETS", "BROKER", "CRC-32C", "VERDICT", ""), rows)
    session.output.show(data, f"{text}\n{_summary(words)}")
    return OK if is_well else UNHEALTHY


def _summary(words: Collection[str]) -> str:
    counts = Counter(words)
    if counts[DIFFER]:
        return f"THE REPLICAS DIFFER: of {counts[DIFFER]} partitions in {len(words)}"
    if counts[UNKNOWN]:
        return f"not compared: {counts[UNKNOWN]} partitions of {len(words)}"
    left_out = f"; left out as compacted: {counts[COMPACTED]}" if counts[COMPACTED] else ""
    return f"all replicas agree{left_out}"


def _compare(
    admin: "Admin", partitions: Mapping[TopicPartition, PartitionDescription]
) -> list[Verdict]:
    compacted = _compacted(admin, {place.topic for place in partitions})
    verdicts = [
        Verdict(place, each.isr, place.topic in compacted) for place, each in partitions.items()
    ]
    for _ in range(ATTEMPTS):
        unknown = [each for each in verdicts if each.word == UNKNOWN]
        if not unknown:
            break
        _choose_ranges(admin, unknown)
        _take_digests(admin, unknown)
    return verdicts


def _compacted(admin: "Admin", topics: Collection[str]) -> set[str]:
    found = admin.describe_configs(map(ConfigResource.topic, sorted(topics))).raise_for_errors()
    return {
        resource.name
        for resource, entries in found.ok.items()
        if "compact" in entries["cleanup.policy"].value
    }


def _choose_ranges(admin: "Admin", verdicts: Collection[Verdict]) -> None:
    """What all replicas that answer have in common."""
    spans: dict[TopicPartition, tuple[int, int]] = {}
    for verdict, _, replica in _replicas(admin, verdicts, digests=False):
        start, end = spans.get(verdict.place, (0, replica.high_watermark))
        start = max(start, replica.log_start_offset)
        spans[verdict.place] = (start, max(start, min(end, replica.high_watermark)))
    for verdict in verdicts:
        verdict.start, verdict.end = spans.get(verdict.place, (0, 0))


def _take_digests(admin: "Admin", verdicts: Collection[Verdict]) -> None:
    for verdict, broker, replica in _replicas(admin, verdicts, digests=True):
        verdict.digests[broker] = replica.digest
        verdict.failures.pop(broker, None)


def _replicas(
    admin: "Admin", verdicts: Collection[Verdict], *, digests: bool
) -> Iterator[tuple[Verdict, int, ReplicaDescription]]:
    """What each in-sync broker has of each; of one that does not answer it is noted why."""
    for broker in sorted({broker for each in verdicts for broker in each.members}):
        mine = {each.place: each for each in verdicts if broker in each.members}
        ranges = {place: (each.start, each.end) for place, each in mine.items()}
        topics = sorted({place.topic for place in mine})
        try:
            listed = admin.describe_replicas(broker, topics, digest=ranges if digests else False)
        except KraftError as error:
            for verdict in mine.values():
                verdict.digests[broker], verdict.failures[broker] = None, error.message
            continue
        for replica in listed:
            place = TopicPartition(replica.topic, replica.partition)
            if place in mine:
                yield mine[place], broker, replica
