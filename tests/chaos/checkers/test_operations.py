import pytest

from chaos.checkers.operations import Poll, polls, sends, topic_changes, topic_reads
from chaos.history import History, HistoryDamaged, Json, Operation
from kraftlog.types import TopicPartition
from tests.chaos.checkers.scripts import FAIL, TOPIC, UNKNOWN, Script

PLACE: dict[str, Json] = {"topic": TOPIC, "partition": 0}


def test_sends_and_probes_are_records_at_a_place() -> None:
    script = Script()
    script.send("a", 5)
    script.operate("prober", "probe", {**PLACE, "value": 7}, {"offset": -1})
    script.send("c", outcome=UNKNOWN)
    script.operate("producer", "send", {"note": "no record"})
    found = list(sends(script.history))
    assert [(each.value, each.offset, each.is_acked) for each in found] == [
        ("a", 5, True),
        (7, None, True),
        ("c", None, False),
    ]
    assert {each.key for each in found} == {TopicPartition(TOPIC, 0)}


def test_polls_that_ended_well_stand_between_the_moves_of_their_consumer() -> None:
    script = Script()
    script.poll((0, "a"), (1, 2))
    script.operate("consumer", "seek", {"offset": 0})
    script.operate("consumer", "poll", PLACE, outcome=FAIL)
    script.poll()
    found = list(polls(script.history))
    assert [each.records if isinstance(each, Poll) else each.op for each in found] == [
        ((0, "a"), (1, 2)),
        "seek",
        (),
    ]


def test_changes_of_topics() -> None:
    script = Script()
    script.create("a", 3)
    script.delete("a", outcome=UNKNOWN)
    found = [(each.topic, each.creates, each.offset) for each in topic_changes(script.history)]
    assert found == [("a", True, 3), ("a", False, None)]


def test_reads_of_topics_are_of_all_or_of_those_asked_for() -> None:
    script = Script()
    script.read(["a", "b"], 3)
    script.read(["a"], asked=["a", "x"])
    objects: dict[str, Json] = {"offset": 4, "topics": {"a": {"partitions": 1}}}
    script.operate("reader", "describe_topics", {"topics": ["a"]}, objects)
    script.operate("reader", "list_topics", {}, outcome=UNKNOWN)
    found = [(each.asked, each.found, each.offset) for each in topic_reads(script.history)]
    assert found == [
        (None, frozenset({"a", "b"}), 3),
        (frozenset({"a", "x"}), frozenset({"a"}), None),
        (frozenset({"a"}), frozenset({"a"}), 4),
    ]


def read_all(history: History) -> None:
    for reader in (sends, polls, topic_changes, topic_reads):
        list(reader(history))


def odd(op: str, value: Json, result: Json) -> Operation:
    return Script().operate("odd", op, value, result)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (odd("send", {**PLACE, "value": 1.5}, {}), "neither text nor a number"),
        (odd("send", {**PLACE, "value": True}, {}), "neither text nor a number"),
        (odd("send", {"topic": TOPIC, "value": 1}, {}), "partition None"),
        (odd("send", {"partition": 0, "value": 1}, {}), "topic None"),
        (odd("send", {**PLACE, "value": 1}, {"offset": "5"}), "'5' is no offset"),
        (odd("poll", PLACE, None), "its result is no object"),
        (odd("poll", PLACE, {**PLACE, "records": "ab"}), "records is no list"),
        (odd("poll", PLACE, {**PLACE, "records": [[1]]}), "is not \\[offset, value\\]"),
        (odd("poll", PLACE, {**PLACE, "records": [[-1, "a"]]}), "-1 is no offset"),
        (odd("create_topic", {}, {}), "it names no topic"),
        (odd("list_topics", {}, {"topics": [1]}), "are no names"),
        (odd("list_topics", {"topics": "a"}, {"topics": []}), "are no names"),
    ],
)
def test_what_makes_no_sense_is_no_history(operation: Operation, why: str) -> None:
    script = Script()
    script.operations.append(operation)
    with pytest.raises(HistoryDamaged, match=why):
        read_all(script.history)
