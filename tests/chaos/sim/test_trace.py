"""The hash of all events, and the words for the last ones."""

from random import Random

import pytest

from chaos.sim.schedule import Schedule
from chaos.sim.trace import EVENTS_KEPT, Trace, describe
from kraftlog.types import Uuid
from quorum.core.messages import FetchReply, ReplicaKey, Voter


def trace(*, live: bool = False) -> Trace:
    return Trace(Schedule(Random(1)), live=live)


def test_every_event_changes_the_hash() -> None:
    seen = set()
    one = trace()
    for raw in (b"", b"x", b"x"):
        one.add("n1 -> n2", "a message", raw)
        seen.add(one.hash)
    assert len(seen) == 3
    other = trace()
    other.add("n1 -> n2", "another message that the bytes stand for", b"")
    again = trace()
    again.add("n1 -> n2")
    assert other.hash == again.hash


def test_the_last_events_are_kept() -> None:
    one = trace()
    for number in range(EVENTS_KEPT + 5):
        one.add(f"event {number}")
    assert len(one.recent()) == EVENTS_KEPT
    assert one.recent()[0].endswith("event 5")


def test_a_live_trace_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    trace(live=True).add("n1 dies")
    assert capsys.readouterr().out == "      0.00 n1 dies\n"


def test_a_message_is_described_without_its_bulk() -> None:
    leader = Voter(ReplicaKey(4, Uuid(bytes(16))), "n4:1")
    words = describe(FetchReply(epoch=3, leader=leader, high_watermark=7))
    assert words.startswith("FetchReply epoch=3 leader=Voter key=4:")
    assert "high_watermark=7" in words
    assert "batches" not in words
    assert describe([1, "x" * 100]) == f"[1, {'x' * 60}]"
