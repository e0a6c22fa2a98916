"""Records that are written and read while something happens to the cluster, and the judgement: no
send has failed, and of what was acknowledged nothing is lost, doubled or out of order.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from chaos.live.threads import Threads
from kraftlog.consumer import Consumer
from kraftlog.delivery import DeliveryFuture
from kraftlog.errors import KraftError
from kraftlog.local import LocalCluster
from tests.waiting import SECONDS, wait_until

UNANSWERED_MAX = 300


@contextmanager
def _running(threads: Threads) -> Iterator[None]:
    threads.start()
    try:
        yield
    finally:
        threads.stop()


@dataclass
class Writer:
    """Writes 0, 1, 2, ... to each partition, without waiting for each answer."""

    cluster: LocalCluster
    topic: str
    partitions: int
    acknowledged: dict[int, list[int]] = field(init=False)
    failures: list[KraftError] = field(default_factory=list)
    _unanswered: deque[tuple[int, int, DeliveryFuture]] = field(default_factory=deque)
    _threads: Threads = field(init=False)

    def __post_init__(self) -> None:
        self._threads = Threads({"writer": self._write})
        self.acknowledged = {partition: [] for partition in range(self.partitions)}

    def writing(self) -> AbstractContextManager[None]:
        """While it lasts; in the end all that was sent has its answer."""
        return _running(self._threads)

    def _write(self) -> None:
        with self.cluster.producer(linger="2ms", delivery_timeout="60s") as producer:
            number = 0
            while not self._threads.over.is_set():
                for partition in range(self.partitions):
                    sent = producer.send(self.topic, b"%d" % number, partition=partition)
                    self._unanswered.append((partition, number, sent))
                number += 1
                self._note_answers(UNANSWERED_MAX)
            self._note_answers(0)

    def _note_answers(self, left: int) -> None:
        while len(self._unanswered) > left:
            partition, number, delivery = self._unanswered.popleft()
            try:
                delivery.result(90)
            except KraftError as error:
                self.failures.append(error)
            else:
                self.acknowledged[partition].append(number)

    def wait_for_more(self, records: int = 100) -> None:
        """Until each partition has so many more."""
        before = {partition: len(numbers) for partition, numbers in self.acknowledged.items()}
        wait_until(
            lambda: all(len(self.acknowledged[each]) >= before[each] + records for each in before),
            f"{records} more records in each partition",
        )


class Reader:
    """Reads all partitions from their start."""

    def __init__(self, cluster: LocalCluster, topic: str, partitions: int) -> None:
        self.found: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
        self._consumer: Consumer[bytes, bytes] = cluster.consumer(topic, offset_reset="earliest")
        self._threads = Threads({"reader": self._read_on})

    def reading(self) -> AbstractContextManager[None]:
        return _running(self._threads)

    def _read_on(self) -> None:
        while not self._threads.over.is_set():
            self._take("100ms")

    def _take(self, timeout: str) -> int:
        records = self._consumer.poll(timeout)
        for record in records:
            self.found[record.partition].append(int(record.value or b"-1"))
        return len(records)

    def finish(self, acknowledged: dict[int, list[int]]) -> None:
        """Read up to the last of these, and what may come after it, however much that is."""
        with self._consumer:
            deadline = time.monotonic() + SECONDS
            while (taken := self._take("1s")) or self._missing(acknowledged):
                if taken:
                    deadline = time.monotonic() + SECONDS
                missing = self._missing(acknowledged)
                assert time.monotonic() < deadline, f"nothing comes, and of {missing} some"

    def _missing(self, acknowledged: dict[int, list[int]]) -> list[int]:
        """Partitions of which not as many are read as were acknowledged."""
        return [each for each in acknowledged if len(self.found[each]) < len(acknowledged[each])]


class Load:
    """One who writes and one who reads."""

    def __init__(self, cluster: LocalCluster, topic: str, partitions: int) -> None:
        self._place = (cluster, topic, partitions)
        self.writer = Writer(*self._place)
        self.reader = Reader(*self._place)

    @contextmanager
    def running(self) -> Iterator[Writer]:
        with self.reader.reading(), self.writer.writing():
            yield self.writer

    def check(self, story: str) -> None:
        """What was read meanwhile, and what is read now."""
        acknowledged = self.writer.acknowledged
        assert self.writer.failures == [], story
        assert all(acknowledged.values()), story
        for reader in (self.reader, Reader(*self._place)):
            reader.finish(acknowledged)
            for partition, numbers in acknowledged.items():
                assert reader.found[partition] == numbers, f"partition {partition}; {story}"
