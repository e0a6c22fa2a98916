"""A producer and a consumer that run while a cluster is broken, and the reckoning afterwards.

Every record is a number of its own, so that afterwards each can be accounted for: acknowledged or
not, there or not, once or more often, in order or not. A record that was not acknowledged may be
there or not; one that was must be.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chaos.live.threads import Threads
from kraftlog.consumer import Consumer
from kraftlog.errors import KraftError
from kraftlog.producer import Producer
from kraftlog.records import RecordMetadata
from kraftlog.types import TopicPartition

_OnDelivery = Callable[[RecordMetadata | None, KraftError | None], None]

POLL_SECONDS = 0.2
CLOSE_SECONDS = 30.0
READ_BACK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Ack:
    number: int
    place: TopicPartition
    offset: int
    at: float


@dataclass(frozen=True, slots=True)
class Reckoning:
    """What became of the records."""

    acknowledged: int
    read: int
    lost: tuple[int, ...]
    duplicated: tuple[int, ...]
    reordered: tuple[int, ...]
    failed: int
    """Sends that ended in an error; whether these records are there is not known."""

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.duplicated or self.reordered)


def reckon(acks: Sequence[Ack], read: Iterable[Sequence[int]], *, failed: int = 0) -> Reckoning:
    """`read` has the numbers of each partition, in the order of its log."""
    partitions = [list(numbers) for numbers in read]
    counts = Counter(number for numbers in partitions for number in numbers)
    return Reckoning(
        acknowledged=len(acks),
        read=sum(counts.values()),
        lost=tuple(sorted({ack.number for ack in acks} - set(counts))),
        duplicated=tuple(sorted(number for number, count in counts.items() if count > 1)),
        reordered=tuple(
            after for numbers in partitions for before, after in pairwise(numbers) if after < before
        ),
        failed=failed,
    )


class Workload:
    """Sends numbers to a topic, at a rate, until it is stopped; remembers what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str, *, per_second: int = 500) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._pause = 1 / per_second
        self._lock = threading.Lock()
        self._acks: list[Ack] = []
        self._errors: list[KraftError] = []
        self._seen = 0
        self._threads = Threads({"producer": self._produce, "consumer": self._consume})

    def start(self) -> None:
        self._threads.start()

    def stop(self) -> None:
        """Stop sending, and wait for the answers to all that was sent."""
        self._threads.stop()

    # -- what it has seen

    @property
    def acknowledged(self) -> int:
        return len(self._acks)

    @property
    def seen(self) -> int:
        """How many records the consumer has had."""
        return self._seen

    @property
    def errors(self) -> Sequence[KraftError]:
        return self._errors

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time without an acknowledgement between two moments, in seconds."""
        with self._lock:
            times = sorted(ack.at for ack in self._acks if begin <= ack.at <= end)
        marks = [begin, *times, end]
        return max(after - before for before, after in pairwise(marks))

    def wait_for_ack(self, since: float, timeout: float) -> bool:
        """Until something sent is acknowledged after this moment."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            with self._lock:
                if self._acks and self._acks[-1].at > since:
                    return True
            time.sleep(0.01)
        return False

    def reckon(self, read: Iterable[Sequence[int]] | None = None) -> Reckoning:
        """Read everything back with a new consumer, unless somebody else has."""
        found = _read_back(self._bootstrap, self._topic) if read is None else read
        return reckon(self._acks, found, failed=len(self._errors))

    # -- the threads

    def _produce(self) -> None:
        number = 0
        with Producer[bytes, bytes](self._bootstrap, linger="2ms") as producer:
            next_at = time.monotonic()
            while not self._threads.over.is_set():
                producer.send(self._topic, b"%d" % number, on_delivery=self._on_delivery(number))
                number += 1
                next_at += self._pause
                self._threads.over.wait(max(0.0, next_at - time.monotonic()))
            producer.flush(CLOSE_SECONDS)

    def _on_delivery(self, number: int) -> _OnDelivery:
        def on_delivery(metadata: RecordMetadata | None, error: KraftError | None) -> None:
            with self._lock:
                if metadata is None:
                    self._errors += [error] if error else []
                    return
                place = TopicPartition(metadata.topic, metadata.partition)
                self._acks.append(Ack(number, place, metadata.offset, time.monotonic()))

        return on_delivery

    def _consume(self) -> None:
        with Consumer[bytes, bytes](
            self._topic, bootstrap_servers=self._bootstrap, offset_reset="earliest"
        ) as consumer:
            while not self._threads.over.is_set():
                self._seen += len(consumer.poll(POLL_SECONDS))


def _read_back(bootstrap: str, topic: str) -> list[list[int]]:
    """All numbers of a topic, partition by partition."""
    found: dict[int, list[int]] = {}
    with Consumer[bytes, bytes](
        topic, bootstrap_servers=bootstrap, offset_reset="earliest"
    ) as consumer:
        deadline = time.monotonic() + READ_BACK_SECONDS
        while True:
            records = consumer.poll(POLL_SECONDS)
            for record in records:
                found.setdefault(record.partition, []).append(int(record.value or b"-1"))
            if not records and consumer.lag() == 0:
                return [found[partition] for partition in sorted(found)]
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} cannot be read to its end")
