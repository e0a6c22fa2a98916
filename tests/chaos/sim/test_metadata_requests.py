"""What administrators ask for, and how it is judged."""

from random import Random

import pytest

from chaos.sim.metadata_ledger import Done
from chaos.sim.metadata_requests import create_topic, draw_move, draw_wish, unfence
from chaos.sim.metadata_rpc import Reply
from kraftlog._check import InvariantViolation
from kraftlog.rpc import common_pb2, controller_pb2
from metadata_log.image import EMPTY


def test_a_topic_that_is_not_there_was_not_made() -> None:
    wish = create_topic("t", [1, 2, 3], Random(1))
    result = controller_pb2.NewTopicResult(name="t")
    reply = Reply(create_topics=controller_pb2.CreateTopicsReply(topics=[result]))
    with pytest.raises(InvariantViolation, match="M10 a topic is not made"):
        wish.check(reply, Done(5, b"", 1, EMPTY, EMPTY))


def test_what_was_refused_left_no_trace() -> None:
    wish = create_topic("t", [1, 2, 3], Random(1))
    error = common_pb2.Error(code=36, message="there is one")
    result = controller_pb2.NewTopicResult(name="t", error=error)
    reply = Reply(create_topics=controller_pb2.CreateTopicsReply(topics=[result]))
    wish.check(reply, Done(5, b"", 1, EMPTY, EMPTY))
    with pytest.raises(InvariantViolation, match="M4 refused"):
        wish.check(reply, Done(5, b"", 2, EMPTY, EMPTY))


def test_wishes_are_drawn_from_what_there_is() -> None:
    first = draw_wish(EMPTY, [1, 2, 3], Random(1)).request
    assert first.WhichOneof("request") == "create_topics"
    moves = [draw_move(EMPTY, "t", [1, 2, 3], Random(seed)).request for seed in range(20)]
    assert {each.WhichOneof("request") for each in moves} == {"elect_leaders", "reassign"}
    assert not unfence(3).fence_broker.fenced
