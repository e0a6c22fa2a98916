"""What all calls of the controller have in common: who asks, until when, and how it is answered.

A call is decoded, becomes an operation of the controller or a read of its committed image, and is
answered with a `ControllerReply`. An answer that may be given again is kept in the log as bytes,
so operations answer in bytes; the correlation id is put in last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kraftlog.errors import KraftError
from kraftlog.rpc import controller_pb2
from metadata_log.decide import Decision
from metadata_log.image import Image
from metadata_log.places import Agenda
from quorum.controller import Answer, Controller, Once, Operation, Step, step_of

R = TypeVar("R")

Reply = controller_pb2.ControllerReply
Decide = Callable[[Image, Agenda | None], Decision[R]]
Encode = Callable[[R], Reply]


@dataclass(frozen=True, slots=True)
class Asked:
    """The circumstances of one request."""

    by: str
    """Who asks, in its own words: for causes and logs."""
    once: Once | None
    deadline_ms: int | None
    answer: Callable[[Reply | KraftError], None]
    """To be called once."""


class Calls:
    """The base of all groups of calls."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller

    def submit(
        self,
        asked: Asked,
        name: str,
        decide: Decide[R],
        encode: Encode[R],
        *,
        then: Callable[[R], None] | None = None,
        keep: bool = True,
    ) -> None:
        """Decide, and answer at commit. `then` hears of the response once it is appended. With
        `keep` a repeat of the request gets the same answer.
        """

        def encoded(response: R, end_offset: int) -> bytes:
            reply = encode(response)
            reply.offset = end_offset
            return reply.SerializeToString()

        def step(image: Image, agenda: Agenda | None) -> Step:
            decision = decide(image, agenda)
            plain = step_of(decision, encoded)
            if then is None or decision.agenda is not None:
                return plain
            hear, response = then, decision.response
            return Step(plain.records, plain.answer, None, lambda _end: hear(response))

        def on_answer(answer: Answer) -> None:
            asked.answer(answer if isinstance(answer, KraftError) else Reply.FromString(answer))

        self.controller.submit(
            Operation(
                f"{name} by {asked.by}",
                step,
                on_answer,
                once=asked.once if keep else None,
                deadline_ms=asked.deadline_ms,
            )
        )

    def read(self, asked: Asked, encode: Callable[[Image], Reply]) -> None:
        """Answer from the committed image, once it holds all that was committed before."""
        if not self.controller.is_active:
            asked.answer(self.controller.not_controller())
            return

        def on_done(error: KraftError | None) -> None:
            if error is not None or not self.controller.is_active:
                asked.answer(self.controller.not_controller())
                return
            image = self.controller.committed
            try:
                reply = encode(image)
            except KraftError as refusal:
                asked.answer(refusal)
                return
            reply.offset = image.end_offset
            asked.answer(reply)

        self.controller.ledger.read(on_done)
