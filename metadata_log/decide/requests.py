"""Requests that may be repeated: the first answer is kept with the effects, in one batch (M3).

A client that gets no answer cannot know whether its request was carried out. It asks again with the
same client id and request id, whoever leads by then, and gets the answer that it missed.
"""

from dataclasses import replace
from typing import TypeVar

from kraftlog._check import invariant
from metadata_log.decide import Decision, caused
from metadata_log.image import Image
from metadata_log.records import Cause, CauseKind, RequestDone

_R = TypeVar("_R")


def answered(image: Image, client_id: bytes, request_id: int) -> bytes | None:
    """The answer that this request got before; None if it is new, or long forgotten."""
    done = image.requests.find(client_id, request_id)
    return done.result if done is not None else None


def with_answer(
    decision: Decision[_R], client_id: bytes, request_id: int, result: bytes
) -> Decision[_R]:
    """The decision with its answer among its records."""
    invariant(decision.agenda is None, "a request with an answer is one batch")
    cause = Cause(CauseKind.ADMIN_REQUEST, f"request {request_id} of {client_id.hex()}")
    done = RequestDone(client_id, request_id, result)
    return replace(decision, records=decision.records + caused(cause, done))
