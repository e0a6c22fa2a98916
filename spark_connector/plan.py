"""Which offsets a query reads: partitions, starts and ends; runs on Spark's driver."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kraftlog.errors import ConfigError, KraftError, UnknownTopicOrPartition
from kraftlog.offsets import Anchor, Offset
from kraftlog.types import TopicPartition
from spark_connector.client import MISSING_TOPIC_MS, Cluster, Ends, cluster
from spark_connector.loss import data_lost
from spark_connector.offsets import Offsets, Places, Range, is_time, split
from spark_connector.options import NoMatch, SourceOptions

logger = logging.getLogger(__name__)

LOOKS_FOR_MISSING = 10

T = TypeVar("T")


class Planner:
    """Asks the cluster what a query has to know. Made anew in each process that needs one."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @property
    def cluster(self) -> Cluster:
        return cluster(self._options.client.common)

    def partitions(self) -> list[TopicPartition]:
        """All that is read, as of now."""
        topics = self._options.topics
        if topics.pattern is not None:
            return _all_of(self._ask(lambda: self.cluster.matching(topics.pattern or "")))
        if not topics.assigned:
            return _all_of(self._ask(lambda: self.cluster.topics(topics.names)))
        names = sorted({place.topic for place in topics.assigned})
        sizes = self._ask(lambda: self.cluster.topics(names))
        for place in topics.assigned:
            if place.partition >= sizes[place.topic]:
                raise UnknownTopicOrPartition(
                    f"no partition {place}: the topic has {sizes[place.topic]}",
                    hint="assign those that there are",
                )
        return list(topics.assigned)

    def existing(self, known: Iterable[TopicPartition] = ()) -> list[TopicPartition]:
        """As partitions, for a stream that runs: what has gone is left out, once it has been
        missing for a while. A broker that has just come up may know less than others did.
        """
        wanted = set(known)
        deadline = time.monotonic() + MISSING_TOPIC_MS / 1000
        while not wanted <= set(found := self._existing()) and time.monotonic() < deadline:
            time.sleep(MISSING_TOPIC_MS / 1000 / LOOKS_FOR_MISSING)
        return found

    def _existing(self) -> list[TopicPartition]:
        topics = self._options.topics
        if topics.pattern is not None:
            return self.partitions()
        names = topics.names or {place.topic for place in topics.assigned}
        sizes = self._ask(lambda: self.cluster.existing(sorted({*names})))
        if not topics.assigned:
            return _all_of(sizes)
        return [p for p in topics.assigned if p.partition < sizes.get(p.topic, 0)]

    def topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes]:
        """The ids of their topics: one that is made anew has another."""
        names = sorted({place.topic for place in partitions})
        return self._ask(lambda: self.cluster.topic_ids(names)) if names else {}

    def starts(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._resolve(self._options.starting, partitions, self._options.no_match)

    def ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._resolve(self._options.ending, partitions, NoMatch.LATEST)

    def bounds(
        self,
        partitions: Iterable[TopicPartition],
        known: Offsets | None = None,
        wait_ms: int = 0,
    ) -> dict[TopicPartition, Ends]:
        """What there is now; with a time to wait, once there is more than is known."""
        places = list(partitions)
        if not places:
            return {}
        return self._ask(lambda: self.cluster.ends(places, known, wait_ms))

    def sizes(self, ranges: Iterable[Range]) -> dict[TopicPartition, int]:
        wanted = [each for each in ranges if each.size > 0]
        return self._ask(lambda: self.cluster.estimate_bytes(wanted)) if wanted else {}

    def split(self, ranges: list[Range]) -> list[Range]:
        options = self._options
        return split(ranges, options.min_partitions, options.max_records_per_partition)

    def _resolve(
        self, places: Places, partitions: Iterable[TopicPartition], no_match: NoMatch
    ) -> Offsets:
        wanted = places.of(partitions)
        if not wanted:
            return {}
        times = {place: offset for place, offset in wanted.items() if is_time(offset)}
        rest = {place: offset for place, offset in wanted.items() if place not in times}
        found = self._ask(lambda: self.cluster.locate(rest)) if rest else {}
        if times:
            found |= self._at_times(places.option, times, no_match)
        found |= self._checked(places.option, {p: found[p] for p in rest if _is_named(rest[p])})
        return {place: found[place] for place in wanted}

    def _at_times(
        self, option: str, times: Mapping[TopicPartition, Offset], no_match: NoMatch
    ) -> Offsets:
        now_ms = time.time_ns() // 1_000_000
        asked = {place: offset.time_ms(now_ms) or 0 for place, offset in times.items()}
        found = self._ask(lambda: self.cluster.at_times(asked))
        late = [place for place, offset in found.items() if offset is None]
        if late and no_match is NoMatch.ERROR and option.startswith("starting"):
            raise ConfigError(
                f"option {option}: {late[0]} has no record at or after {asked[late[0]]}",
                hint="set startingOffsetsByTimestampStrategy to latest to begin at its end",
            )
        ends = self.bounds(late)
        return {
            place: ends[place].end if offset is None else offset for place, offset in found.items()
        }

    def _checked(self, option: str, named: Offsets) -> Offsets:
        """The offsets that a user names; what is before the first record is lost."""
        found: Offsets = {}
        for place, bounds in self.bounds(named).items():
            offset = named[place]
            if offset > bounds.end:
                raise ConfigError(
                    f"option {option} has {offset} for {place}, which has {bounds.start} to"
                    f" {bounds.end}",
                    hint="use an offset in between, -1 for latest or -2 for earliest",
                )
            if offset < bounds.start:
                data_lost(
                    f"option {option} has {offset} for {place}, which begins at {bounds.start}",
                    fail=self._options.fail_on_data_loss,
                )
            found[place] = max(offset, bounds.start)
        return found

    def _ask(self, ask: Callable[[], T]) -> T:
        """Ask again so often as fetchOffset.numRetries says."""
        for _ in range(self._options.offset_retries):
            try:
                return ask()
            except UnknownTopicOrPartition:
                raise
            except KraftError as error:
                if not error.retriable:
                    raise
                logger.warning("asking again: %s", error)
            time.sleep(self._options.offset_retry_ms / 1000)
        return ask()


def _is_named(offset: Offset) -> bool:
    return offset.anchor is Anchor.ABSOLUTE


def _all_of(sizes: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, n) for topic, count in sizes.items() for n in range(count)]
