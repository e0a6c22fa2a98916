"""Clients that run while a cluster is broken, each of whose operations is recorded.

Every 20 ms one record goes to each partition (acks=all, idempotent), so that the time between two
acknowledgements says how long a partition could not be written. A consumer reads along.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from chaos.history import HistoryWriter, Json
from chaos.live.measure import longest_gap
from chaos.live.threads import Threads
from kraftlog.consumer import Consumer
from kraftlog.errors import KraftError
from kraftlog.producer import Producer
from kraftlog.records import ConsumerRecord, RecordMetadata
from kraftlog.types import TopicPartition

INTERVAL_SECONDS = 0.02
POLL_SECONDS = 0.2
FLUSH_SECONDS = 60.0
FINAL_SECONDS = 60.0
ABANDON_SECONDS = 1.0
REQUEST_TIMEOUT = "1s"
BACKOFF_MAX = "100ms"

_OnDelivery: TypeAlias = Callable[[RecordMetadata | None, KraftError | None], None]
_Records: TypeAlias = Sequence[ConsumerRecord[bytes, bytes]]


class Load:
    """Records of one topic are numbered: a value is sent once in all the run."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        history: HistoryWriter,
        *,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self._bootstrap = bootstrap
        self._history = history
        self._interval = interval
        self._lock = threading.Lock()
        self._acks: dict[int, list[float]] = defaultdict(list)
        self._reads: dict[int, list[float]] = defaultdict(list)
        self._latencies: list[tuple[float, float]] = []
        self._ends: dict[int, int] = defaultdict(int)
        self.errors: Counter[str] = Counter()
        self.sent = 0
        self._threads = Threads({"producer": self._produce, "consumer": self._consume})

    def start(self) -> None:
        self._threads.start()

    def stop(self) -> None:
        """Stop sending, and wait for the answers to all that was sent."""
        self._threads.stop()

    def abandon(self) -> None:
        """Stop sending, and wait for nobody: the cluster may be gone."""
        self._threads.abandon(ABANDON_SECONDS)

    # -- what it has seen

    @property
    def acknowledged(self) -> int:
        with self._lock:
            return sum(map(len, self._acks.values()))

    def acks(self, partition: int) -> list[float]:
        """When each was acknowledged, by the monotonic clock."""
        with self._lock:
            return list(self._acks[partition])

    def latencies(self, begin: float, end: float) -> list[float]:
        """How long each send took that was acknowledged between two moments, in seconds."""
        with self._lock:
            return [taken for at, taken in self._latencies if begin <= at <= end]

    def write_gap(self, begin: float, end: float) -> float:
        """The longest time for which one of the partitions acknowledged nothing."""
        return max(longest_gap(self.acks(each), begin, end) for each in range(self.partitions))

    def read_gap(self, begin: float, end: float) -> float:
        with self._lock:
            reads = [list(self._reads[each]) for each in range(self.partitions)]
        return max(longest_gap(each, begin, end) for each in reads)

    def wait_for_acks(self, since: float, seconds: float) -> bool:
        """Until every partition has acknowledged something after that moment."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._threads.check()
            if all(self._last_ack(each) > since for each in range(self.partitions)):
                return True
            time.sleep(0.01)
        return False

    def _last_ack(self, partition: int) -> float:
        with self._lock:
            times = self._acks[partition]
            return times[-1] if times else 0.0

    # -- the threads

    def _produce(self) -> None:
        with Producer[bytes, bytes](
            self._bootstrap,
            linger=0,
            request_timeout=REQUEST_TIMEOUT,
            retry_backoff_max=BACKOFF_MAX,
        ) as producer:
            next_at = time.monotonic()
            while not self._threads.over.is_set():
                for partition in range(self.partitions):
                    self._send(producer, partition)
                next_at = max(next_at + self._interval, time.monotonic() - 1.0)
                self._threads.over.wait(max(0.0, next_at - time.monotonic()))
            producer.flush(FLUSH_SECONDS)

    def _send(self, producer: Producer[bytes, bytes], partition: int) -> None:
        number = self.sent
        self.sent += 1
        value: Json = {"topic": self.topic, "partition": partition, "value": number}
        operation = self._history.invoke(f"producer-{partition}", "send", value)
        begun = time.monotonic()
        try:
            producer.send(
                self.topic,
                b"%d" % number,
                partition=partition,
                on_delivery=self._on_delivery(operation, partition, begun),
            )
        except KraftError as error:
            self._count(error)
            self._history.fail(operation, _words(error))

    def _on_delivery(self, operation: int, partition: int, begun: float) -> _OnDelivery:
        def on_delivery(metadata: RecordMetadata | None, error: KraftError | None) -> None:
            now = time.monotonic()
            if metadata is None:
                self._count(error)
                # It was sent at least once: whether it is in the log nobody can say.
                self._history.unknown(operation, _words(error))
                return
            self._history.ok(operation, {"offset": metadata.offset})
            with self._lock:
                self._acks[partition].append(now)
                self._latencies.append((now, now - begun))
                self._ends[partition] = max(self._ends[partition], metadata.offset + 1)

        return on_delivery

    def _count(self, error: KraftError | None) -> None:
        with self._lock:
            self.errors["no answer" if error is None else error.code_name] += 1

    def _consume(self) -> None:
        with self._consumer() as consumer:
            while not self._threads.over.is_set():
                self._note("consumer", consumer.poll(POLL_SECONDS))

    def _consumer(self) -> Consumer[bytes, bytes]:
        return Consumer(
            self.topic,
            bootstrap_servers=self._bootstrap,
            offset_reset="earliest",
            request_timeout=REQUEST_TIMEOUT,
            retry_backoff_max=BACKOFF_MAX,
        )

    def _note(self, process: str, records: _Records) -> None:
        """One poll: an operation for each partition that gave anything."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for record in records:
            found[record.partition].append((record.offset, int(record.value or b"-1")))
        for partition, pairs in found.items():
            place: dict[str, Json] = {"topic": self.topic, "partition": partition}
            operation = self._history.invoke(process, "poll", place)
            self._history.ok(operation, {**place, "records": pairs})
            with self._lock:
                self._reads[partition].append(time.monotonic())

    # -- in the end

    def read_back(self, seconds: float = FINAL_SECONDS) -> None:
        """All of it, by a consumer that was not there before."""
        with self._consumer() as consumer:
            deadline = time.monotonic() + seconds
            while not self._is_read(consumer):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.topic} cannot be read to its end")
                self._note("final", consumer.poll(POLL_SECONDS))

    def _is_read(self, consumer: Consumer[bytes, bytes]) -> bool:
        places = consumer.assignment()
        return (
            len(places) == self.partitions
            and all(self._is_past(consumer, place) for place in places)
            and consumer.lag() == 0
        )

    def _is_past(self, consumer: Consumer[bytes, bytes], place: TopicPartition) -> bool:
        return consumer.position(place) >= self._ends[place.partition]


def _words(error: KraftError | None) -> str:
    return "no answer" if error is None else f"{error.code_name}: {error.message}"
