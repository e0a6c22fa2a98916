"""What the synchronous and the asynchronous producer share: the part that lives on a loop.

What needs gRPC is imported when a producer first sends: an import alone must cost little.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Self

from kraftlog._background import Background
from kraftlog.accumulator import Accumulator
from kraftlog.delivery import Delivery, FlushResult, wait_done
from kraftlog.errors import KraftError, RetriableError, TimeoutError_
from kraftlog.partition_choice import PartitionerChoice, find_chooser
from kraftlog.producer_options import ProducerOptions
from kraftlog.records import PartitionInfo

if TYPE_CHECKING:
    pass


LAST_WRITES_SECONDS = 1.0


def make_accumulator(
    options: ProducerOptions, partitioner: PartitionerChoice, wake: Callable[[], None]
) -> Accumulator:
    dice = Random()  # noqa: S311  spreads load, guards nothing
    chooser = find_chooser(partitioner, dice, options.batch_bytes)
    return Accumulator(options.accumulator, chooser, wake, time.monotonic)


class ProducerCore:
    def __init__(
        self, options: ProducerOptions, accumulator: Accumulator, background: Background
    ) -> None:
        self._options = options
        self._accumulator = accumulator
        self._background = background
        from kraftlog.cluster_client import ClusterClient  # noqa: PLC0415
        from kraftlog.sender import Sender  # noqa: PLC0415

        self.client: ClusterClient = ClusterClient(options.common, background, auto_create=True)
        self.sender: Sender = Sender(options, accumulator, self.client)
        background.start(self.sender.run(), "sender")

    @classmethod
    async def open(cls, options: ProducerOptions, accumulator: Accumulator) -> Self:
        cores: list[Self] = []

        def on_failure(error: BaseException) -> None:
            for core in cores:
                core.end(broken(error))

        background = await Background.open(options.common.client_id, on_failure)
        cores.append(cls(options, accumulator, background))
        return cores[0]

    def end(self, error: KraftError) -> None:
        self.sender.fail_all(error)

    async def ensure_topic(self, topic: str, timeout_ms: float) -> None:
        """Make a topic known to the accumulator, or raise why that is not possible."""
        view = await self.client.ensure_topic(topic, timeout_ms=timeout_ms)
        self._accumulator.set_partitions(topic, len(view.partitions), view.available)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        view = await self.client.ensure_topic(topic, timeout_ms=self._options.max_block_ms)
        return [
            PartitionInfo(topic, p.partition, p.leader_id, p.leader_epoch, p.replicas, p.isr)
            for p in view.partitions
        ]

    async def close(self) -> None:
        """What has no answer by now gets none any more."""
        if self._options.acks == 0:
            await self.sender.wait_taken(LAST_WRITES_SECONDS)
        self.end(closed_error())
        await self._background.close()


async def flush_async(accumulator: Accumulator, seconds: float | None) -> FlushResult:
    """Send all that waits, and wait for the answers."""
    deliveries = accumulator.start_flush()
    try:
        async with asyncio.timeout(seconds):
            await _all_done(deliveries)
    except TimeoutError:
        return flush_result(deliveries)
    finally:
        accumulator.end_flush()
    return flush_result(deliveries)


async def _all_done(deliveries: Sequence[Delivery]) -> None:
    for delivery in deliveries:
        if not delivery.is_done:
            await wait_done(delivery)


def flush_result(deliveries: Sequence[Delivery]) -> FlushResult:
    pending = sum(len(each.timestamps) for each in deliveries if not each.is_done)
    return FlushResult(pending, sum(each.failed_records for each in deliveries))


def closed_error() -> RetriableError:
    return TimeoutError_("the producer was closed before this record was sent")


def broken(error: BaseException) -> KraftError:
    """An error of ours ended the background: every caller hears of it."""
    failed = KraftError(f"the client has failed: {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed


def no_room(options: ProducerOptions, buffered: int) -> TimeoutError_:
    return TimeoutError_(
        f"no room in the buffer within max_block ({options.max_block_ms} ms): {buffered} of"
        f" {options.buffer_bytes} bytes have no answer yet",
        hint="send more slowly, raise buffer_bytes, or see why brokers do not answer",
    )
