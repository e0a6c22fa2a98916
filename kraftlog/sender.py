"""The loop half of a producer: takes batches out of the accumulator and sees them through.

One task. It wakes when a batch is ready, an answer came, a pause is over or the view changed, and
then does all there is to do at once: what has expired fails, what may be sent is sent, per leader
in requests of one batch per partition, at most `max_in_flight` of them unanswered.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple

from kraftlog._client_wire import error_of
from kraftlog._produce_wire import (
    Produced,
    ProducePart,
    decode_produced,
    encode,
    halves,
    produce_request,
)
from kraftlog.accumulator import Accumulator, PartitionQueue
from kraftlog.cluster_client import ClusterClient, no_answer, not_reached
from kraftlog.cluster_view import NO_LEADER, Node
from kraftlog.delivery import NO_OFFSET
from kraftlog.errors import (
    AmbiguousError,
    KraftError,
    LeaderNotAvailable,
    OutOfOrderSequence,
    RecordTooLarge,
    RequestTimedOut,
    ThrottledError,
    TimeoutError_,
)
from kraftlog.logs import client_logger
from kraftlog.producer_options import ProducerOptions
from kraftlog.retry import needs_new_view
from kraftlog.rpc import broker_pb2, common_pb2
from kraftlog.send_window import Batch, ProducerIdentity, is_repeat_of_old
from kraftlog.types import TopicPartition

logger = client_logger(__name__)

REPLY_SLACK_MS = 500
"""A broker gives up waiting for replicas so much earlier than we give up waiting for it."""
THROTTLED_SECONDS = 0.01


class _Item(NamedTuple):
    queue: PartitionQueue
    batch: Batch
    topic_id: bytes


class Sender:
    def __init__(
        self, options: ProducerOptions, accumulator: Accumulator, client: ClusterClient
    ) -> None:
        self._options = options
        self._accumulator = accumulator
        self._client = client
        self._view = client.view
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._answered = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._open: dict[int, int] = {}
        """Requests without an answer, by broker."""
        self._silent_to: set[str] = set()
        """Addresses that were sent what gets no answer."""
        self._throttled: dict[int, float] = {}
        """Until when a broker wants nothing from us."""
        self._asking_identity = False
        self._identity: ProducerIdentity | None = None
        self.failure: KraftError | None = None
        """Why nothing can be sent any more."""
        client.on_change(self._view_changed)

    # -- waking

    def wake(self) -> None:
        self._woken.set()

    def wake_at(self, when: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= when and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._woken.set()

    def _view_changed(self) -> None:
        for name in self._client.topics:
            topic = self._view.topics.get(name)
            if topic is not None:
                self._accumulator.set_partitions(name, len(topic.partitions), topic.available)
            elif self._accumulator.knows(name):
                self._accumulator.forget(name)
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            self._step(self._loop.time())

    # -- one pass

    def _step(self, now: float) -> None:
        by_leader: dict[int, list[PartitionQueue]] = {}
        for queue in self._accumulator.active():
            self._expire(queue, now)
            for batch in queue.window.settle():
                self._fail(batch, _never_told(batch))
            self._follow_topic(queue)
            if self._may_send(queue, now):
                queue.sent_to = self._view.leadership(queue.topic, queue.partition)
                by_leader.setdefault(queue.sent_to[0], []).append(queue)
        for queue in by_leader.pop(NO_LEADER, ()):
            self._wait_for_leader(queue, now)
        for leader, queues in by_leader.items():
            self._send_to(self._view.brokers[leader], queues)

    def _may_send(self, queue: PartitionQueue, now: float) -> bool:
        """Whether the partition has a batch that may go now; if later, we shall wake then."""
        window = queue.window
        if window.wants_identity:
            return self._give_identity(queue)
        if window.next_again() is None:
            ready_at = self._accumulator.ready_at(queue) if window.takes_new() else None
            if ready_at is None:
                return False
            if ready_at > now:
                self.wake_at(ready_at)
                return False
        if queue.not_before > now and not self._has_moved(queue):
            self.wake_at(queue.not_before)
            if queue.seeks_leader:
                self._client.look_soon()
            return False
        return True

    def _has_moved(self, queue: PartitionQueue) -> bool:
        """Whether another leader is known than the one that was asked (KAFKA-15415)."""
        place = queue.topic, queue.partition
        return queue.seeks_leader and self._view.has_moved(*place, queue.sent_to)

    def _wait_for_leader(self, queue: PartitionQueue, now: float) -> None:
        queue.failures += 1
        pause_ms = self._options.common.backoff.pause_ms(queue.failures, self._client.dice)
        queue.not_before = now + pause_ms / 1000
        queue.seeks_leader = True
        self.wake_at(queue.not_before)
        self._client.want_refresh()

    def _follow_topic(self, queue: PartitionQueue) -> None:
        """Notice a topic that was deleted and made again: it has another id, and an empty log."""
        topic = self._view.topics.get(queue.topic)
        if topic is None or topic.topic_id == queue.topic_id:
            return
        if queue.topic_id:
            queue.window.restart()
            for batch in queue.window.settle():
                self._fail(batch, _never_told(batch))
        queue.topic_id = topic.topic_id

    # -- who we are

    def _give_identity(self, queue: PartitionQueue) -> bool:
        if queue.window.is_settling:
            return False
        identity = self._identity
        if identity is None or identity.producer_id == queue.window.lost_producer_id:
            self._ask_identity()
            return False
        queue.window.set_identity(identity)
        return True

    def _ask_identity(self) -> None:
        if not self._asking_identity:
            self._asking_identity = True
            self._client.start(self._fetch_identity(), "producer id")

    async def _fetch_identity(self) -> None:
        request = broker_pb2.InitProducerIdRequest()
        try:
            reply = await self._client.ask_any(
                "init_producer_id", request, timeout_ms=self._options.delivery_timeout_ms
            )
        except KraftError as error:
            logger.warning("no producer id: %s", error)
            if not (error.retriable or error.outcome_unknown):
                self.fail_all(error)
        else:
            told = reply.init_producer_id
            self._identity = ProducerIdentity(told.producer_id, told.producer_epoch)
        self._asking_identity = False
        self._woken.set()

    # -- sending

    def _send_to(self, leader: Node, queues: list[PartitionQueue]) -> None:
        free_at = self._throttled.get(leader.node_id, 0.0)
        if free_at > self._loop.time():
            self.wake_at(free_at)
            return
        open_requests = self._open.get(leader.node_id, 0)
        while queues and open_requests < self._options.max_in_flight:
            items, queues = self._fill_request(queues)
            if not items or not self._send(leader, items):
                return
            open_requests = self._open.get(leader.node_id, 0)

    def _fill_request(
        self, queues: list[PartitionQueue]
    ) -> tuple[list[_Item], list[PartitionQueue]]:
        """One batch of each partition until the request is full, and the partitions to go on with:
        those that had no turn come first.
        """
        items: list[_Item] = []
        room = self._options.max_request_bytes
        for position, queue in enumerate(queues):
            batch = self._next_batch(queue)
            if batch is None:
                continue
            queue.window.start(batch)
            items.append(_Item(queue, batch, queue.topic_id))
            room -= len(encode(batch, self._options.compression))
            if room < self._options.batch_bytes:
                return items, [*queues[position + 1 :], *queues[: position + 1]]
        return items, [item.queue for item in items]

    def _next_batch(self, queue: PartitionQueue) -> Batch | None:
        """To be sent again before anything new. A second batch of a partition goes only if full."""
        window = queue.window
        again = window.next_again()
        if again is not None or not window.takes_new():
            return again
        ready_at = self._accumulator.ready_at(queue)
        if ready_at is None:
            return None
        if ready_at > self._loop.time():
            self.wake_at(ready_at)
            return None
        batch = self._accumulator.take(queue)
        if batch is not None:
            window.take(batch)
        return batch

    def _send(self, leader: Node, items: list[_Item]) -> bool:
        parts = [
            ProducePart(
                item.topic_id,
                item.queue.topic,
                item.queue.partition,
                encode(item.batch, self._options.compression),
            )
            for item in items
        ]
        timeout_ms = self._options.common.request_timeout_ms
        request = produce_request(
            parts,
            acks=self._options.acks,
            timeout_ms=max(timeout_ms - REPLY_SLACK_MS, timeout_ms // 2, 1),
        )
        node_id, address = leader.node_id, leader.address
        on_reply, on_unsent = self._answers(node_id, address, items)
        try:
            self._client.stream(address, "produce").send(
                self._client.encode("produce", request),
                timeout_ms=timeout_ms,
                on_reply=on_reply,
                on_unsent=on_unsent,
                silent=self._options.acks == 0,
            )
        except ThrottledError as error:
            throttled = Produced(error=error)
            self._settle(items, lambda _: throttled)
            self.wake_at(self._loop.time() + THROTTLED_SECONDS)
            return False
        self._open[node_id] = self._open.get(node_id, 0) + 1
        if self._options.acks == 0:
            self._silent_to.add(address)
            self._settle(items, lambda _: Produced())
        return True

    def _answers(
        self, node_id: int, address: str, items: list[_Item]
    ) -> tuple[Callable[[broker_pb2.BrokerReply | None], None], Callable[[], None]]:
        def settle(find: Callable[[_Item], Produced]) -> None:
            self._open[node_id] -= 1
            if self._options.acks != 0:
                self._settle(items, find)
            self._answered.set()
            self._woken.set()

        def on_reply(reply: broker_pb2.BrokerReply | None) -> None:
            if reply is not None and reply.throttle_ms:
                self._throttled[node_id] = self._loop.time() + reply.throttle_ms / 1000
            if reply is None:
                unknown = Produced(error=no_answer("produce", address))
                settle(lambda _: unknown)
            elif reply.HasField("error"):
                refused = Produced(error=error_of(reply.error, address))
                settle(lambda _: refused)
            else:
                found = decode_produced(reply.produce, address)
                missing = Produced(error=no_answer("produce (left out)", address))
                settle(lambda item: found.get((item.topic_id, item.queue.partition), missing))

        def on_unsent() -> None:
            self._silent_to.discard(address)
            self._client.want_refresh()  # with acks=0 no refusal leads to it
            unsent = Produced(error=not_reached(address))
            settle(lambda _: unsent)

        return on_reply, on_unsent

    # -- answers

    def _settle(self, items: list[_Item], find: Callable[[_Item], Produced]) -> None:
        for item in items:
            produced = find(item)
            if produced.error is None or is_repeat_of_old(produced.error):
                self._acknowledge(item, produced)
            else:
                self._refuse(item, produced, produced.error)

    def _acknowledge(self, item: _Item, produced: Produced) -> None:
        queue, batch = item.queue, item.batch
        queue.window.on_ack(batch)
        queue.failures, queue.not_before, queue.seeks_leader = 0, 0.0, False
        offset = produced.base_offset if produced.error is None else NO_OFFSET
        if not batch.given_up:
            batch.delivery.settle(
                batch.first,
                batch.first + batch.count,
                base_offset=offset,
                append_time=produced.append_time,
            )
        self._accumulator.release(batch)

    def _refuse(self, item: _Item, produced: Produced, error: KraftError) -> None:
        queue, batch = item.queue, item.batch
        if isinstance(error, RecordTooLarge) and batch.count > 1 and not batch.given_up:
            queue.window.split(batch, halves(batch))
            return
        ending = queue.window.on_failure(batch, error)
        if ending is not None:
            ending.attempts = batch.attempts
            self._fail(batch, ending)
        elif batch.given_up:
            self._accumulator.release(batch)
        elif batch.attempts > self._options.retries:
            queue.window.drop(batch)
            self._fail(batch, _last_word(batch, self._within))
        self._pause(queue, produced, error)

    def _pause(self, queue: PartitionQueue, produced: Produced, error: KraftError) -> None:
        """Before the next attempt; none if we were told who leads now."""
        place = TopicPartition(queue.topic, queue.partition)
        if produced.hint is not None and self._view.learn_leader(place, produced.hint):
            return
        if isinstance(error, OutOfOrderSequence):
            queue.failures = 0  # the leader is there: it misses what was given up
        queue.failures += 1
        pause_ms = self._options.common.backoff.pause_ms(queue.failures, self._client.dice)
        queue.not_before = self._loop.time() + pause_ms / 1000
        queue.seeks_leader = needs_new_view(error)
        if queue.seeks_leader:
            self._client.want_refresh()

    async def wait_taken(self, seconds: float) -> None:
        """Until brokers have all that got no answer, or so long. With acks=0 nobody else waits for
        that, and what is on its way would be lost with its stream.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(self._open.values()):
                    self._answered.clear()
                    await self._answered.wait()
                await asyncio.gather(*map(self._wait_read, self._silent_to))

    async def _wait_read(self, address: str) -> None:
        """Requests of a stream are handled in order: an answered one is behind all before it."""
        question = common_pb2.ApiVersionsRequest()
        timeout_ms = self._options.common.request_timeout_ms
        with contextlib.suppress(KraftError):
            await self._client.ask(
                address, "api_versions", question, timeout_ms=timeout_ms, purpose="produce"
            )

    # -- the end of a batch

    def _expire(self, queue: PartitionQueue, now: float) -> None:
        """What is too old fails, whether it is under way or not."""
        oldest_allowed = now - self._options.delivery_timeout_ms / 1000
        for batch in [b for b in queue.window.batches if b.created <= oldest_allowed]:
            if not batch.given_up:
                queue.window.drop(batch)
                self._fail(batch, _last_word(batch, self._within))
        waiting = queue.closed[0] if queue.closed else queue.filling
        while waiting is not None and waiting.created <= oldest_allowed:
            taken = self._accumulator.take(queue)
            if taken is not None:
                self._fail(taken, self._never_sent(queue))
            waiting = queue.closed[0] if queue.closed else queue.filling
        hoped_for = (batch for batch in queue.window.batches if not batch.given_up)
        oldest = next(hoped_for, waiting)
        if oldest is not None:
            self.wake_at(oldest.created + self._options.delivery_timeout_ms / 1000)

    @property
    def _within(self) -> str:
        return f"within {self._options.delivery_timeout_ms} ms"

    def _never_sent(self, queue: PartitionQueue) -> KraftError:
        timeout_ms = self._options.delivery_timeout_ms
        place = TopicPartition(queue.topic, queue.partition)
        why: KraftError | None = self._client.last_failure
        if why is None:
            try:
                self._view.leader(place)
            except KraftError as error:
                why = error
        if isinstance(why, LeaderNotAvailable):
            return why
        return TimeoutError_(f"a batch for {place} was not sent within {timeout_ms} ms: {why}")

    def _fail(self, batch: Batch, error: KraftError) -> None:
        batch.delivery.settle(batch.first, batch.first + batch.count, error=error)
        if not batch.in_flight:
            self._accumulator.release(batch)

    def fail_all(self, error: KraftError) -> None:
        """The producer is over: nothing that has no answer will get another one."""
        self.failure = error
        self._accumulator.end(error)
        for queue in self._accumulator.active():
            for batch in list(queue.window.batches):
                queue.window.drop(batch)
                ended = "before the producer was closed"
                self._fail(batch, _last_word(batch, ended) if batch.attempts else error)
        for _, batch in self._accumulator.unsent():
            self._fail(batch, error)


def _never_told(batch: Batch) -> KraftError:
    return AmbiguousError(
        "a batch may have been appended before the producer lost its place in the partition",
        hint="read the end of the partition to see whether it is there",
        attempts=batch.attempts,
    )


def _last_word(batch: Batch, when: str) -> KraftError:
    """Why a batch that was sent failed in the end; `when` is how long there was time for it."""
    if batch.in_flight or batch.maybe_appended:
        return RequestTimedOut(
            f"no answer {when}, after {batch.attempts} attempts",
            hint="it may be in the log: read the end of the partition to see",
            attempts=batch.attempts,
        )
    if batch.error is None:
        return TimeoutError_(f"not sent again {when}")
    batch.error.attempts = batch.attempts
    return batch.error
