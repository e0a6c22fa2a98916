"""What the synchronous and the asynchronous consumer share: the part that lives on a loop, and
which partitions there are to read.

What needs gRPC is imported when a consumer first reads: an import alone must cost little.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Self

from kraftlog._background import Background
from kraftlog._producer_core import broken
from kraftlog.config_key import shorten
from kraftlog.consumer_options import ConsumerOptions
from kraftlog.errors import ConfigError, KraftError, OffsetOutOfRange
from kraftlog.fetch_buffer import FetchBuffer
from kraftlog.logs import client_logger
from kraftlog.offsets import Offset, to_offset
from kraftlog.records import PartitionInfo
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    pass

logger = client_logger(__name__)

BUFFER_BYTES = 64 << 20
KEEP_POSITIONS = "keep positions yourself, with position and seek"

Assignment = Iterable[TopicPartition] | Mapping[TopicPartition, int | str | Offset]


def make_buffer(
    options: ConsumerOptions, on_room: Callable[[], None], on_news: Callable[[], None]
) -> FetchBuffer:
    return FetchBuffer(
        # While one reply is read the next is on its way.
        partition_bytes=2 * options.limits.partition_max_bytes,
        total_bytes=max(BUFFER_BYTES, 4 * options.limits.max_bytes),
        on_room=on_room,
        on_news=on_news,
    )


class Subscription:
    """All partitions of some topics, of those whose names fit a pattern, or just some by hand."""

    def __init__(self, topics: tuple[str, ...], pattern: str | None, reset: Offset | None) -> None:
        if topics and pattern:
            raise ConfigError("topics and a pattern", hint="give one of the two")
        if not all(topics) or set(map(type, topics)) - {str}:
            raise ConfigError(f"{shorten(topics)} are no topics", hint="give their names")
        self.topics = topics
        self.pattern = _compiled(pattern)
        self._reset = reset
        self.by_hand: dict[TopicPartition, Offset | KraftError] | None = None
        self._known: dict[TopicPartition, Offset | KraftError] = {}
        self._is_first = True

    @property
    def is_empty(self) -> bool:
        return self.by_hand is None and not self.topics and self.pattern is None

    def assign(self, partitions: Assignment) -> None:
        """From now on exactly these, whatever was subscribed."""
        self.topics, self.pattern = (), None
        if isinstance(partitions, Mapping):
            self.by_hand = {place: to_offset(start) for place, start in partitions.items()}
        else:
            self.by_hand = {place: self._beginning(place) for place in partitions}

    def _beginning(self, place: TopicPartition) -> Offset | KraftError:
        if self._reset is not None:
            return self._reset
        return OffsetOutOfRange(
            f"{place} has no offset to begin with",
            hint="seek to one, assign it with one, or choose another offset_reset",
        )

    def watched(self) -> set[str]:
        if self.by_hand is not None:
            return {place.topic for place in self.by_hand}
        return set(self.topics)

    def starts(self, partitions: Mapping[str, int]) -> Mapping[TopicPartition, Offset | KraftError]:
        """Where to begin in each partition, given how many each topic has. One that was not there
        at first is read from its start: it was made after we began. One whose topic is gone is read
        no more.
        """
        if self.by_hand is not None:
            return self.by_hand
        for topic in self._topics_in(partitions):
            for place in (TopicPartition(topic, n) for n in range(partitions[topic])):
                if place not in self._known:
                    start = self._beginning(place) if self._is_first else Offset.START
                    self._known[place] = start
        self._is_first = False
        gone = [place for place in self._known if place.topic not in partitions]
        for place in gone:
            del self._known[place]
        return self._known

    def _topics_in(self, partitions: Mapping[str, int]) -> list[str]:
        if self.pattern is not None:
            return sorted(name for name in partitions if self.pattern.fullmatch(name))
        return [topic for topic in self.topics if topic in partitions]


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"pattern {shorten(pattern)} is no regular expression: {error}") from None


class ConsumerCore:
    def __init__(
        self,
        options: ConsumerOptions,
        buffer: FetchBuffer,
        subscription: Subscription,
        background: Background,
    ) -> None:
        self._options = options
        self._buffer = buffer
        self._subscription = subscription
        self._background = background
        from kraftlog.cluster_client import ClusterClient  # noqa: PLC0415
        from kraftlog.fetcher import Fetcher  # noqa: PLC0415

        self.client: ClusterClient = ClusterClient(options.common, background)
        self.fetcher: Fetcher = Fetcher(options, buffer, self.client)
        self.failure: KraftError | None = None
        self._warned: set[str] = set()
        self.client.on_change(self.follow_view)
        background.start(self.fetcher.run(), "fetcher")
        self.watch()

    @classmethod
    async def open(
        cls,
        options: ConsumerOptions,
        buffer: FetchBuffer,
        subscription: Subscription,
        on_failure: Callable[[], None],
    ) -> Self:
        cores: list[Self] = []

        def end(error: BaseException) -> None:
            for core in cores:
                core.failure = broken(error)
            on_failure()

        background = await Background.open(options.common.client_id, end)
        cores.append(cls(options, buffer, subscription, background))
        return cores[0]

    def watch(self) -> None:
        """Ask for what the subscription needs, and take over what is known of it already."""
        subscription = self._subscription
        self.client.watch_topics(
            subscription.watched(), all_topics=subscription.pattern is not None
        )
        self.client.want_refresh()
        self.fetcher.wake()

    def follow_view(self) -> None:
        """Assign what the view has of the subscription."""
        if self.client.view.offset < 0:
            return  # nobody has told us anything yet
        topics = self.client.view.topics
        counts = {name: len(topic.partitions) for name, topic in topics.items()}
        for name in self._subscription.watched() - counts.keys() - self._warned:
            self._warned.add(name)
            logger.warning("there is no topic %s yet; waiting for it", name)
        self._buffer.assign(self._subscription.starts(counts))

    async def ensure_topic(self, topic: str, timeout_ms: float) -> None:
        await self.client.ensure_topic(topic, timeout_ms=timeout_ms)
        self.follow_view()

    async def end_offset(self, place: TopicPartition) -> int:
        """The high watermark, asked of the leader."""
        from kraftlog._fetch_wire import LATEST  # noqa: PLC0415
        from kraftlog._offset_finder import query_offsets  # noqa: PLC0415

        timeout_ms = self._options.common.api_timeout_ms
        answers = await query_offsets(self.client, {place: LATEST}, timeout_ms=timeout_ms)
        answer = answers[place]
        if isinstance(answer, KraftError):
            raise answer
        return answer.offset

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        timeout_ms = self._options.common.api_timeout_ms
        view = await self.client.ensure_topic(topic, timeout_ms=timeout_ms)
        return [
            PartitionInfo(topic, p.partition, p.leader_id, p.leader_epoch, p.replicas, p.isr)
            for p in view.partitions
        ]

    async def close(self) -> None:
        await self._background.close()
