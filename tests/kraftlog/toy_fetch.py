"""Fetch sessions and parked fetches of a toy broker."""

import asyncio
from collections import Counter
from collections.abc import Callable

from kraftlog.errors import ErrorCode, KraftError
from kraftlog.rpc import broker_pb2, common_pb2
from tests.kraftlog.toy_truth import ToyPartition, Truth, read_records

Send = Callable[[broker_pb2.BrokerReply], None]
Place = tuple[bytes, int]


class Sessions:
    def __init__(self, truth: Truth, broker: int) -> None:
        self._truth = truth
        self._broker = broker
        self._next_id = 1
        self.limit = 100
        """How many sessions there may be; above it none is given."""
        self._sessions: dict[int, tuple[int, dict[Place, broker_pb2.FetchPartition]]] = {}
        self._reported: dict[int, dict[Place, int]] = {}
        self._parked: list[Callable[[], bool]] = []
        self._waking: dict[int, list[Callable[[], bool]]] = {}
        self.told: broker_pb2.FetchPartitionReply | None = None
        """What it says of every partition, instead of what is so."""
        self.served: Counter[Place] = Counter()
        """Replies with records, by partition."""

    def forget_all(self) -> None:
        self._sessions.clear()

    def fetch(self, request: broker_pb2.FetchDataRequest, send: Send) -> None:
        if request.wake:
            for answer in self._waking.pop(request.session_id, []):
                answer()
            send(broker_pb2.BrokerReply(fetch=broker_pb2.FetchDataReply()))
            return
        opened = self._open(request)
        if opened is None:
            code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            send(broker_pb2.BrokerReply(error=common_pb2.Error(code=code, message="no session")))
            return
        session_id, wanted = opened
        done = False

        def attempt(*, late: bool = False) -> bool:
            nonlocal done
            if done:
                return True
            reply, size, news = self._read(session_id, wanted, request)
            done = late or news or size >= request.min_bytes
            if done:
                self._count(reply)
                send(broker_pb2.BrokerReply(fetch=reply))
            return done

        if not attempt(late=request.max_wait_ms == 0):
            self._parked.append(attempt)
            self._waking[session_id] = [lambda: attempt(late=True)]
            asyncio.get_running_loop().call_later(
                request.max_wait_ms / 1000, lambda: attempt(late=True)
            )

    def _count(self, reply: broker_pb2.FetchDataReply) -> None:
        for topic in reply.topics:
            for part in topic.partitions:
                self.served[topic.topic_id, part.partition] += bool(part.records)

    def wake_all(self) -> None:
        self._parked = [attempt for attempt in self._parked if not attempt()]

    def _open(
        self, request: broker_pb2.FetchDataRequest
    ) -> tuple[int, dict[Place, broker_pb2.FetchPartition]] | None:
        named = {
            (topic.topic_id, part.partition): part
            for topic in request.topics
            for part in topic.partitions
        }
        if request.session_epoch <= 0:
            self._sessions.pop(request.session_id, None)
            if request.session_epoch < 0 or len(self._sessions) >= self.limit:
                return 0, named
            session_id, self._next_id = self._next_id, self._next_id + 1
            self._sessions[session_id] = (1, named)
            self._reported[session_id] = {}
            return session_id, named
        epoch, known = self._sessions.get(request.session_id, (0, {}))
        if epoch != request.session_epoch:
            return None
        for topic in request.forgotten:
            for part in topic.partitions:
                known.pop((topic.topic_id, part.partition), None)
        known.update(named)
        self._sessions[request.session_id] = (epoch + 1, known)
        return request.session_id, known

    def _read(
        self,
        session_id: int,
        wanted: dict[Place, broker_pb2.FetchPartition],
        request: broker_pb2.FetchDataRequest,
    ) -> tuple[broker_pb2.FetchDataReply, int, bool]:
        """The reply, its bytes, and whether it has news that does not wait for more of them."""
        reply = broker_pb2.FetchDataReply(session_id=session_id)
        size, news, room = 0, False, request.max_bytes
        is_incremental = session_id != 0 and request.session_epoch > 0
        reported = self._reported.get(session_id, {})
        for (topic_id, number), part in wanted.items():
            told = self._read_one(topic_id, part, room, request.rack)
            size += len(told.records)
            room -= len(told.records)
            is_news = any(map(told.HasField, ("error", "diverging", "preferred_replica")))
            news = news or is_news
            is_changed = reported.get((topic_id, number)) != told.high_watermark
            if is_incremental and not (told.records or is_news or is_changed):
                continue
            reported[topic_id, number] = told.high_watermark
            reply.topics.add(topic_id=topic_id).partitions.append(told)
        return reply, size, news

    def _read_one(
        self, topic_id: bytes, part: broker_pb2.FetchPartition, room: int, rack: str
    ) -> broker_pb2.FetchPartitionReply:
        known: ToyPartition | None = None
        if self.told is not None:
            told = broker_pb2.FetchPartitionReply()
            told.CopyFrom(self.told)
            told.partition = part.partition
            return told
        try:
            known = self._truth.find("", topic_id, part.partition)
            closer = self._truth.follower_for_rack.get(rack)
            if closer == self._broker:
                return read_records(known, part, room)
            epoch = part.leader_epoch if part.HasField("leader_epoch") else None
            self._truth.led(self._broker, "", topic_id, number=part.partition, epoch=epoch)
            if closer is not None:
                return broker_pb2.FetchPartitionReply(
                    partition=part.partition, preferred_replica=closer
                )
            return read_records(known, part, room)
        except KraftError as error:
            refused = self._truth.error(error, known)
            return broker_pb2.FetchPartitionReply(partition=part.partition, error=refused)
