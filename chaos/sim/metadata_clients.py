"""Administrators who ask, repeat and read, and remember what they were told (M1 to M4, M10).

A request has a name, so that it can be repeated when no answer came: to the same controller or to
another. All is judged against the ledger, after the step in which it was said.
"""

from dataclasses import dataclass
from functools import partial

from chaos.sim.metadata_cluster import MetadataCluster
from chaos.sim.metadata_requests import Wish, create_topic, draw_wish, unfence
from chaos.sim.metadata_rpc import Reply, Request
from chaos.sim.node import SimNode
from kraftlog._check import invariant
from kraftlog.errors import ErrorCode
from kraftlog.rpc import controller_pb2
from kraftlog.types import Uuid
from metadata_log.image import Image
from quorum.controller_wire import encode_topic

CLIENTS = 3
CLIENT_ID_BASE = 1_000
ASK_MS = 120.0
READ_CHANCE = 0.4
RETRY_MS = (20.0, 300.0)
GIVE_UP_CHANCE = 0.1
UNFENCE_MS = 1_000.0

_NOT_DONE = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED})


@dataclass(slots=True, eq=False)
class Asked:
    """One request, however often it is sent."""

    name: tuple[bytes, int]
    wish: Wish
    floor: int
    attempts: int = 0
    is_unknown: bool = False
    """Some attempt was not answered, or the answer was that nobody knows."""


@dataclass(frozen=True, slots=True)
class Told:
    asked: Asked
    reply: Reply


@dataclass(frozen=True, slots=True)
class Read:
    floor: int
    reply: Reply


class AdminClients:
    def __init__(self, cluster: MetadataCluster) -> None:
        self._cluster = cluster
        self._dice = cluster.dice("administrators")
        self._ids = [Uuid(self._dice.randbytes(16)).raw for _ in range(CLIENTS)]
        self._callers = [
            cluster.caller(CLIENT_ID_BASE + number, f"admin{number}") for number in range(CLIENTS)
        ]
        self._sequence = 0
        self._floor = 0
        self._refused: list[Asked] = []
        self._unknown: list[Asked] = []
        self._unjudged: list[Told | Read] = []
        self._over = False
        self.acked: set[bytes] = set()

    def begin(self) -> None:
        self._cluster.schedule.later(ASK_MS, self._tick)
        self._cluster.schedule.later(UNFENCE_MS, self._unfence)

    def end(self) -> None:
        self._over = self._cluster.is_over = True

    def _tick(self) -> None:
        if self._over:
            return
        dice = self._dice
        self._cluster.schedule.later(ASK_MS * 2 * dice.random(), self._tick)
        number = dice.randrange(CLIENTS)
        if dice.random() < READ_CHANCE:
            self._read(number)
        else:
            self._send(number, self._new(number, self._draw()))

    def _draw(self) -> Wish:
        brokers = [node.node_id for node in self._cluster.brokers()]
        return draw_wish(self._cluster.metadata.image, brokers, self._dice)

    def _unfence(self) -> None:
        """Whoever fenced a broker forgets it; somebody else lets it back in, now and at the end."""
        self._cluster.schedule.later(UNFENCE_MS, self._unfence)
        held = [
            broker.id
            for broker in self._cluster.metadata.image.sorted_brokers()
            if broker.fence_cause is not None and broker.fence_cause.name == "OPERATOR"
        ]
        if held:
            wish = Wish(unfence(self._dice.choice(held)), lambda _reply, _done: None)
            number = self._dice.randrange(CLIENTS)
            self._send(number, self._new(number, wish))

    # -- asking

    def _new(self, number: int, wish: Wish) -> Asked:
        self._sequence += 1
        request = wish.request
        request.request_id.client, request.request_id.sequence = self._ids[number], self._sequence
        request.header.client_id = f"admin{number}"
        return Asked((self._ids[number], self._sequence), wish, self._floor)

    def _send(self, number: int, asked: Asked, node: SimNode | None = None) -> None:
        caller = self._callers[number]
        target = node or caller.choose(self._cluster.controllers(), self._dice.randrange)
        if target is not None:
            asked.attempts += 1
            caller.call(target, asked.wish.request, partial(self._on_reply, number, asked))

    def propose(self, node: SimNode) -> list[bytes]:
        number = self._dice.randrange(CLIENTS)
        brokers = [each.node_id for each in self._cluster.brokers()]
        wish = create_topic(f"live{self._sequence}", brokers, self._dice)
        asked = self._new(number, wish)
        self._send(number, asked, node)
        return [_key(asked)]

    def _read(self, number: int) -> None:
        caller = self._callers[number]
        target = caller.choose(self._cluster.controllers(), self._dice.randrange)
        request = Request(describe_topics=controller_pb2.DescribeTopicsRequest())
        floor = self._floor
        if target is not None:
            caller.call(target, request, lambda reply: self._on_read(floor, reply))

    # -- being told

    def _on_reply(self, number: int, asked: Asked, reply: Reply | None) -> None:
        code = reply.error.code if reply is not None else ErrorCode.REQUEST_TIMED_OUT
        if reply is not None and code == ErrorCode.NONE:
            self._unjudged.append(Told(asked, reply))
        elif code in (*_NOT_DONE, ErrorCode.REQUEST_TIMED_OUT):
            asked.is_unknown |= code == ErrorCode.REQUEST_TIMED_OUT
            self._again(number, asked)
        elif not asked.is_unknown:
            self._refused.append(asked)

    def _again(self, number: int, asked: Asked) -> None:
        if self._dice.random() < GIVE_UP_CHANCE:
            (self._unknown if asked.is_unknown else self._refused).append(asked)
            return
        delay_ms = self._dice.uniform(*RETRY_MS)
        self._cluster.schedule.later(delay_ms, lambda: self._send(number, asked))

    def _on_read(self, floor: int, reply: Reply | None) -> None:
        if reply is not None and not reply.HasField("error"):
            self._unjudged.append(Read(floor, reply))

    # -- judging

    def judge(self) -> None:
        said, self._unjudged = self._unjudged, []
        for each in said:
            if isinstance(each, Told):
                self._judge_told(each.asked, each.reply)
            else:
                self._judge_read(each)

    def _judge_told(self, asked: Asked, reply: Reply) -> None:
        ledger = self._cluster.metadata
        done = ledger.done.get(asked.name)
        facts = {"request": asked.wish.request.WhichOneof("request"), "reply": reply}
        invariant(done is not None, "M1 acknowledged, not committed", **facts)
        if done is None:
            return
        first = Reply.FromString(done.result)
        first.correlation_id = reply.correlation_id
        invariant(first == reply, "M3 another answer than the first", first=first, **facts)
        invariant(reply.offset >= asked.floor, "M1 below what was done before it", **facts)
        asked.wish.check(reply, done)
        self._floor = max(self._floor, reply.offset)
        self.acked.add(_key(asked))
        self._cluster.sightings.note("administrator's request done")
        if asked.is_unknown:
            self._cluster.sightings.note("repeated request answered")

    def _judge_read(self, read: Read) -> None:
        offset = read.reply.offset
        invariant(offset >= read.floor, "M2 a read misses what was done before it", at=offset)
        image = self._cluster.metadata.image_at(offset)
        invariant(image is not None, "M2 a read of what was not committed", at=offset)
        if image is not None:
            same = _described(image) == sorted(map(str, read.reply.describe_topics.topics))
            invariant(same, "M2 a read of what was not committed", at=offset)
        self._floor = max(self._floor, offset)
        self._cluster.sightings.note("linearizable read")

    def check_end(self) -> None:
        """M4: what was refused has left no trace, unless the network may have repeated it."""
        done = self._cluster.metadata.done
        repeats = self._cluster.options.strength("duplicate") > 0
        for asked in self._refused:
            traced = asked.name in done and not repeats
            what = asked.wish.request.WhichOneof("request")
            invariant(not traced, "M4 refused, and yet committed", what=what, name=asked.name)
        for asked in self._unknown:
            fate = "was committed" if asked.name in done else "is gone"
            self._cluster.sightings.note(f"proposal with unknown outcome {fate}")


def _key(asked: Asked) -> bytes:
    client_id, sequence = asked.name
    return client_id + sequence.to_bytes(8, "big")


def _described(image: Image) -> list[str]:
    return sorted(str(encode_topic(image, topic)) for topic in image.sorted_topics())
