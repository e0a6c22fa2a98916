"""The metadata state machine as a Raft library wants it: one command in, one answer out.

Every node decides each command anew from the same image with the same dice, so all of them write
the same records. Commands and answers are JSON: {"op": "create_topic", "topic": "a", ...} and
{"ok": true, "offset": 12, ...} or {"ok": false, "error": "..."}.
"""

import json
import random
from collections.abc import Iterable
from typing import TypeAlias

from kraftlog.errors import InvalidRequest, KraftError
from kraftlog.types import Uuid
from metadata_log.codec import decode_record
from metadata_log.decide import Decision
from metadata_log.decide.bootstrap import bootstrap
from metadata_log.decide.brokers import Registration, register
from metadata_log.decide.features import SUPPORTED
from metadata_log.decide.fencing import unfence
from metadata_log.decide.requests import answered, with_answer
from metadata_log.decide.topics import (
    CreateTopics,
    NewTopic,
    TopicRef,
    create_topics,
    delete_topics,
)
from metadata_log.image import EMPTY, Image
from metadata_log.records import Cause, CauseKind, Listener
from metadata_log.replay import load, replay_all
from metadata_log.snapshot import digest, write_values

Answer: TypeAlias = dict[str, object]

BROKERS = (1, 2, 3)
_CLUSTER_ID = Uuid(bytes(15) + b"\x01")


class SeededDraw:
    """Chance that every node has the same of: its seed comes with the command."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - to be the same everywhere

    def below(self, limit: int) -> int:
        return self._dice.randrange(limit)

    def uuid(self) -> Uuid:
        return Uuid(self._dice.randbytes(16))


class Machine:
    def __init__(self) -> None:
        self.image = EMPTY
        self._write(bootstrap(self.image))
        for broker_id in BROKERS:
            self._write(_register(self.image, broker_id))
            self._write(unfence(self.image, broker_id, Cause(CauseKind.BOOTSTRAP)))

    def _write(self, decision: Decision[object]) -> None:
        records = [caused.record for caused in decision.records]
        self.image = replay_all(self.image, records, self.image.end_offset)

    def apply(self, command: bytes) -> bytes:
        """Never raises: PySyncObj would stop applying for ever."""
        try:
            asked = json.loads(command)
            answer = self._answer(asked)
        except (KraftError, ValueError, KeyError, TypeError) as error:
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        return json.dumps(answer).encode()

    def _answer(self, asked: dict[str, str]) -> Answer:
        if asked["op"] == "list_topics":
            names = [topic.name for topic in self.image.sorted_topics()]
            return {"ok": True, "offset": self.image.end_offset, "topics": sorted(names)}
        client_id, request_id = bytes.fromhex(asked["client"]), int(asked["request"])
        before = answered(self.image, client_id, request_id)
        if before is not None:
            found: Answer = json.loads(before)
            return found
        decision = self._decide(asked)
        end = self.image.end_offset + len(decision.records) + 1  # with the answer's own record
        answer: Answer = {"ok": True, "offset": end}
        self._write(with_answer(decision, client_id, request_id, json.dumps(answer).encode()))
        return answer

    def _decide(self, asked: dict[str, str]) -> Decision[object]:
        name = asked["topic"]
        if asked["op"] == "create_topic":
            wanted = NewTopic(name=name, partitions=1, replication_factor=len(BROKERS))
            draw = SeededDraw(int(asked["seed"]))
            created = create_topics(self.image, CreateTopics((wanted,)), draw=draw)
            _raise_first(outcome.error for outcome in created.response)
            return created
        if asked["op"] == "delete_topic":
            deleted = delete_topics(self.image, (TopicRef(name=name),))
            _raise_first(outcome.error for outcome in deleted.response)
            return deleted
        raise InvalidRequest(f"there is no operation {asked['op']!r}")

    def digest(self) -> str:
        """Equal on nodes that hold the same metadata."""
        return digest(self.image)

    def __getstate__(self) -> tuple[int, list[bytes]]:
        """As PySyncObj's dump file has it: our snapshot."""
        return self.image.end_offset, list(write_values(self.image))

    def __setstate__(self, state: tuple[int, list[bytes]]) -> None:
        end_offset, values = state
        self.image = load((decode_record(value) for value in values), end_offset)


def _register(image: Image, broker_id: int) -> Decision[object]:
    """Brokers on which topics can be placed; nobody runs them."""
    request = Registration(
        broker_id=broker_id,
        cluster_id=_CLUSTER_ID,
        incarnation_id=Uuid(bytes(14) + bytes((1, broker_id))),
        listeners=(Listener("CLIENT", "127.0.0.1", 9_091 + broker_id),),
        log_dirs=(Uuid(bytes(14) + bytes((2, broker_id))),),
        features=tuple(SUPPORTED.values()),
    )
    return register(
        image, request, cluster_id=_CLUSTER_ID, next_offset=image.end_offset, alive=False
    )


def _raise_first(errors: Iterable[KraftError | None]) -> None:
    for error in errors:
        if error is not None:
            raise error
