"""A client of the peer's metadata: each operation ends ok, fail or unknown.

An operation keeps its request id over all its tries, so that one that was carried out and not
answered is answered the next time, and not carried out twice.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import grpc

from chaos.history import Outcome
from chaos.peers.pysyncobj_node import DIGEST, PATH, STATUS
from kraftlog.connection import CHANNEL_OPTIONS
from kraftlog.resolver import Resolve, resolver

TRY_SECONDS = 0.5
STATUS_SECONDS = 2.0
PAUSE_SECONDS = 0.02

_Call: TypeAlias = "grpc.UnaryUnaryMultiCallable[bytes, bytes]"


@dataclass(frozen=True, slots=True)
class PeerStatus:
    leader: str | None
    """The address of whom it takes for the leader."""
    term: int
    offset: int
    digest: str
    """Empty if nobody asked for it."""


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    outcome: Outcome
    offset: int | None = None
    """The end of the log that the change needed, or that the read has seen."""
    topics: tuple[str, ...] = ()
    error: str = ""


class PeerClient:
    """Asks one node after the other. For one thread."""

    def __init__(self, addresses: Sequence[str], *, resolve: Resolve | None = None) -> None:
        dial = resolve or resolver(os.environ)
        self._channels = [grpc.insecure_channel(dial(each), CHANNEL_OPTIONS) for each in addresses]
        self._calls: list[_Call] = [channel.unary_unary(PATH) for channel in self._channels]
        self._id = os.urandom(8).hex()
        self._requests = 0
        self._at = 0

    def create_topic(self, name: str, *, seconds: float) -> PeerAnswer:
        return self._ask(seconds, op="create_topic", topic=name)

    def delete_topic(self, name: str, *, seconds: float) -> PeerAnswer:
        return self._ask(seconds, op="delete_topic", topic=name)

    def list_topics(self, *, seconds: float) -> PeerAnswer:
        """Through the log, as there is no other way to read what is current."""
        return self._ask(seconds, op="list_topics")

    def _ask(self, seconds: float, **asked: str) -> PeerAnswer:
        self._requests += 1
        seed = int.from_bytes(os.urandom(6), "big")
        command = {**asked, "client": self._id, "request": str(self._requests), "seed": str(seed)}
        deadline = time.monotonic() + seconds
        may_be_done, error = False, "no time was given"
        while (left := deadline - time.monotonic()) > 0:
            answer = self._try(json.dumps(command).encode(), min(left, TRY_SECONDS))
            if answer.get("again") is not True:
                return _final(answer)
            may_be_done = may_be_done or answer.get("unknown") is True
            error = str(answer.get("error"))
            self._at = (self._at + 1) % len(self._calls)
            time.sleep(PAUSE_SECONDS)
        return PeerAnswer(Outcome.UNKNOWN if may_be_done else Outcome.FAIL, error=error)

    def _try(self, command: bytes, seconds: float) -> dict[str, object]:
        try:
            answer: dict[str, object] = json.loads(self._calls[self._at](command, timeout=seconds))
        except grpc.RpcError as error:
            never_sent = _is_refused(error)
            return {"again": True, "unknown": not never_sent, "error": str(error.code())}
        return answer

    def status(self, *, digested: bool = False) -> PeerStatus | None:
        """What the first node says of itself; None: nothing."""
        asked = DIGEST if digested else STATUS
        try:
            found = json.loads(self._calls[0](asked.encode(), timeout=STATUS_SECONDS))
        except grpc.RpcError:
            return None
        return PeerStatus(found["leader"], found["term"], found["offset"], found["digest"])

    def close(self) -> None:
        for channel in self._channels:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _is_refused(error: grpc.RpcError) -> bool:
    """Nobody listens there: the call never left."""
    refused = error.code() is grpc.StatusCode.UNAVAILABLE
    return refused and "failed to connect" in str(error.details()).lower()


def _final(answer: dict[str, object]) -> PeerAnswer:
    if answer.get("ok") is not True:
        return PeerAnswer(Outcome.FAIL, error=str(answer.get("error")))
    offset, topics = answer.get("offset"), answer.get("topics")
    return PeerAnswer(
        Outcome.OK,
        offset if isinstance(offset, int) else None,
        tuple(map(str, topics)) if isinstance(topics, list) else (),
    )
