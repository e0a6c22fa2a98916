import json
import pickle

import pytest

from chaos.peers.machine import Answer, Machine


def ask(machine: Machine, op: str, request: int = 0, **fields: str) -> Answer:
    command = {"op": op, "client": "0a", "request": str(request), "seed": "7", **fields}
    found: Answer = json.loads(machine.apply(json.dumps(command).encode()))
    return found


def test_topics_come_and_go() -> None:
    machine = Machine()
    created = ask(machine, "create_topic", 1, topic="a")
    assert created == {"ok": True, "offset": machine.image.end_offset}
    listed = {"ok": True, "offset": machine.image.end_offset, "topics": ["a"]}
    assert ask(machine, "list_topics") == listed
    assert ask(machine, "delete_topic", 2, topic="a")["ok"] is True
    assert ask(machine, "list_topics")["topics"] == []


def test_a_repeat_is_answered_and_not_done_again() -> None:
    machine = Machine()
    first = ask(machine, "create_topic", 1, topic="a")
    ask(machine, "delete_topic", 2, topic="a")
    assert ask(machine, "create_topic", 1, topic="a") == first
    assert ask(machine, "list_topics")["topics"] == []


def test_what_is_refused_changes_nothing() -> None:
    machine = Machine()
    before = machine.digest()
    assert "UnknownTopicOrPartition" in str(ask(machine, "delete_topic", 1, topic="a")["error"])
    assert "InvalidTopic" in str(ask(machine, "create_topic", 2, topic="a/b")["error"])
    assert machine.digest() == before


@pytest.mark.parametrize(
    "command", [b"", b"\xff", b"[]", b"7", b"{}", b'{"op": "x"}', b'{"op": "create_topic"}']
)
def test_nothing_makes_it_raise(command: bytes) -> None:
    answer = json.loads(Machine().apply(command))
    assert answer["ok"] is False
    assert answer["error"]


def test_all_nodes_decide_alike_and_a_dump_is_the_same() -> None:
    first, second = Machine(), Machine()
    for machine in (first, second):
        for number in range(5):
            ask(machine, "create_topic", number, topic=f"t{number}")
    assert first.digest() == second.digest()
    restored: Machine = pickle.loads(pickle.dumps(first))  # noqa: S301 - made just now
    assert restored.digest() == first.digest()
    assert restored.image.end_offset == first.image.end_offset
    assert ask(restored, "create_topic", 1, topic="t1") == ask(first, "create_topic", 1, topic="t1")
