"""How a call becomes an operation, and an operation an answer."""

from kraftlog.errors import KraftError, TimeoutError_
from kraftlog.rpc import controller_pb2
from metadata_log.decide import Decision
from metadata_log.image import Image
from metadata_log.places import Agenda
from quorum.controller_calls import Asked, Calls, Reply
from tests.quorum.governed import Governed


def asked(answers: list[Reply | KraftError], *, deadline_ms: int | None = None) -> Asked:
    return Asked("a test", None, deadline_ms, answers.append)


def _nothing(_image: Image, _agenda: Agenda | None) -> Decision[int]:
    return Decision((), 7)


def _encode(response: int) -> Reply:
    reply = controller_pb2.AllocateProducerIdsReply(first_id=response)
    return Reply(allocate_producer_ids=reply)


def test_a_decision_without_records_is_answered_with_the_offset_it_saw() -> None:
    world = Governed()
    world.start()
    answers: list[Reply | KraftError] = []
    heard: list[int] = []
    Calls(world.controller).submit(asked(answers), "look", _nothing, _encode, then=heard.append)
    world.ledger.settle()
    (reply,) = answers
    assert isinstance(reply, Reply)
    assert reply.allocate_producer_ids.first_id == 7
    assert reply.offset == world.controller.committed.end_offset
    assert heard == [7]


def test_a_call_that_waited_too_long_is_not_begun() -> None:
    world = Governed()
    world.start()
    answers: list[Reply | KraftError] = []
    call = asked(answers, deadline_ms=world.ledger.now + 10)
    Calls(world.controller).submit(call, "look", _nothing, _encode)
    world.ledger.now += 11
    world.ledger.settle()
    assert isinstance(answers[0], TimeoutError_)
