"""Histories: what is written is read again, and damage is named."""

import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.history import (
    Event,
    History,
    HistoryDamaged,
    HistoryWriter,
    Json,
    Operation,
    Outcome,
    read_history,
)
from kraftlog.errors import InvalidRequest


class Ticks:
    """A clock that moves by a quarter second each time it is read."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with HistoryWriter(path, clock=Ticks()) as writer:
        sent = writer.invoke("producer-0", "send", {"topic": "orders", "value": "p0-1"})
        refused = writer.invoke("producer-1", "send", {"value": "p1-1"})
        writer.event("fault", fault="kill -9", target="c2", until=None)
        writer.ok(sent, {"offset": 5})
        writer.fail(refused, "NOT_LEADER_OR_FOLLOWER")
        lost = writer.invoke("admin", "create_topic", {"topic": "ünï"})
        writer.unknown(lost, "timed out")
        writer.invoke("consumer-0", "poll")
    history = read_history(path)
    value = {"topic": "orders", "value": "p0-1"}
    assert history.operations[0] == Operation(
        0, "producer-0", "send", value, 0.25, Outcome.OK, 1.0, {"offset": 5}
    )
    assert history.operations[1].error == "NOT_LEADER_OR_FOLLOWER"
    assert [each.outcome for each in history.operations] == ["ok", "fail", "unknown", "unknown"]
    assert history.operations[3].ended is None
    facts = {"fault": "kill -9", "target": "c2", "until": None}
    assert history.events == (Event(0.75, "fault", facts),)
    assert (history.end, history.is_torn) == (2.0, False)
    assert [each.id for each in history.of("send")] == [0, 1]
    assert list(history.events_of("note")) == []
    assert str(history.operations[2]) == (
        'admin create_topic {"topic": "ünï"} [1.500, 1.750] unknown'
    )


def test_a_line_is_there_as_soon_as_it_was_written(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "h") as writer:
        operation = writer.invoke("p", "send", 1)
        assert len(read_history(tmp_path / "h").operations) == 1
        writer.ok(operation)
        assert read_history(tmp_path / "h").operations[0].outcome is Outcome.OK


def test_threads_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    path = tmp_path / "h"
    writer = HistoryWriter(path)

    def work(name: str) -> None:
        for number in range(200):
            operation = writer.invoke(name, "send", {"value": f"{name}-{number}" * 50})
            writer.ok(operation, {"offset": number})

    threads = [threading.Thread(target=work, args=(f"p{each}",)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    history = read_history(path)
    assert len(history.operations) == 800
    assert {each.outcome for each in history.operations} == {Outcome.OK}


def test_an_operation_ends_once_and_none_begins_after_the_end(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "h")
    done, late = writer.invoke("p", "send"), writer.invoke("p", "send")
    writer.ok(done)
    with pytest.raises(InvalidRequest, match="operation 0 ends fail"):
        writer.fail(done, "again")
    with pytest.raises(InvalidRequest, match="operation 99 ends ok"):
        writer.ok(99)
    writer.close()
    writer.close()
    writer.ok(late)  # after the end nobody can know it any more
    writer.event("note", text="too late")
    with pytest.raises(InvalidRequest, match="p begins send after"):
        writer.invoke("p", "send")
    assert read_history(tmp_path / "h").operations[1].outcome is Outcome.UNKNOWN


def test_a_value_that_is_no_json_is_refused(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "h") as writer, pytest.raises(ValueError, match="JSON"):
        writer.event("note", value=float("nan"))
    assert read_history(tmp_path / "h") == History(())


GOOD = [
    '{"t":0.5,"kind":"invoke","id":0,"process":"p","op":"send","value":{"value":"é"}}',
    '{"t":1,"kind":"ok","id":0,"value":{"offset":3}}',
    '{"t":1.5,"kind":"event","what":"note","text":"x"}',
]


def test_a_file_cut_anywhere_is_read_up_to_the_cut(tmp_path: Path) -> None:
    data = "\n".join([*GOOD, ""]).encode()
    path = tmp_path / "h"
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        history = read_history(path)
        lines = data[:length].count(b"\n")
        # A line without its newline may be whole.
        assert lines <= len(history.operations) + _ends(history) + len(history.events) <= lines + 1
    path.write_bytes(data[:-3])
    assert read_history(path).is_torn


def _ends(history: History) -> int:
    return sum(each.ended is not None for each in history.operations)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "list instead of an object"),
        ('{"kind":"event"}', "t is None"),
        ('{"t":NaN,"kind":"event"}', "t is nan"),
        ('{"t":true,"kind":"event"}', "t is True"),
        ('{"t":"1","kind":"event"}', "t is '1'"),
        ('{"t":0.1,"kind":"event","what":"x"}', "t falls from 1.5 to 0.1"),
        ('{"t":2}', "kind is None"),
        ('{"t":2,"kind":"okay"}', "kind 'okay' is none of"),
        ('{"t":2,"kind":"event","what":7}', "what is 7, not text"),
        ('{"t":2,"kind":"ok","id":0}', "id 0 ends twice"),
        ('{"t":2,"kind":"ok","id":5}', "id 5 ends and never began"),
        ('{"t":2,"kind":"ok","id":"0"}', "id is '0', not a number"),
        ('{"t":2,"kind":"ok","id":false}', "id is False"),
        ('{"t":2,"kind":"invoke","id":0,"process":"p","op":"x"}', "id 0 begins twice"),
        ('{"t":2,"kind":"invoke","id":1,"op":"x"}', "process is None"),
        ('{"t":2,"kind":"invoke","id":1,"process":"p"}', "op is None"),
    ],
)
def test_other_damage_is_named_with_its_line(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "h"
    path.write_text("\n".join([*GOOD, line, ""]))
    with pytest.raises(HistoryDamaged) as caught:
        read_history(path)
    assert f"{path}, line 4: " in caught.value.message
    assert why in caught.value.message


def test_bytes_that_are_no_text_are_damage(tmp_path: Path) -> None:
    (tmp_path / "h").write_bytes(b'{"t":0,"kind":"event","what":"\xff"}\n')
    with pytest.raises(HistoryDamaged, match="line 1: no JSON"):
        read_history(tmp_path / "h")


_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_any_value_comes_back(value: Json, result: Json) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "h")
        with HistoryWriter(path) as writer:
            writer.ok(writer.invoke("p", "x", value), result)
        operation = read_history(path).operations[0]
    assert (operation.value, operation.result) == (value, result)
