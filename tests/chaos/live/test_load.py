"""The load, without a cluster: tests/chaos/live/test_stage.py runs it on one."""

from pathlib import Path

from chaos.history import HistoryWriter, read_history
from chaos.live.load import Load
from kraftlog.errors import RequestTimedOut
from kraftlog.records import ConsumerRecord, RecordMetadata


def load_with(history: HistoryWriter) -> Load:
    return Load("127.0.0.1:1", "orders", 2, history)


def test_an_answer_is_written_down_as_what_it_was(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history.jsonl") as history:
        load = load_with(history)
        good, bad = (history.invoke("producer-0", "send", {}) for _ in range(2))
        load._on_delivery(good, 0, 0.0)(RecordMetadata("orders", 0, 7, 0), None)
        load._on_delivery(bad, 0, 0.0)(None, RequestTimedOut("late"))
    assert load.acknowledged == 1
    assert load.errors == {"REQUEST_TIMED_OUT": 1}
    first, second = read_history(tmp_path / "history.jsonl").operations
    assert (first.outcome, first.result) == ("ok", {"offset": 7})
    assert second.outcome == "unknown"


def test_a_poll_is_an_operation_for_each_partition(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history.jsonl") as history:
        load = load_with(history)
        load._note(
            "final",
            [ConsumerRecord("orders", place, 5, 0, None, b"%d" % place) for place in (0, 1)],
        )
    found = [each.result for each in read_history(tmp_path / "history.jsonl").of("poll")]
    assert found == [
        {"topic": "orders", "partition": place, "records": [[5, place]]} for place in (0, 1)
    ]


def test_a_partition_that_never_answers_is_a_gap(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history.jsonl") as history:
        load = load_with(history)
        load._acks[0] += [1.0, 2.0, 3.0]
        assert load.write_gap(1.0, 3.0) == 2.0  # of partition 1
        load._acks[1] += [1.5, 2.5]
        assert load.write_gap(1.0, 3.0) == 1.0
        assert load.read_gap(1.0, 3.0) == 2.0
        assert not load.wait_for_acks(2.6, 0.0)
