"""One planted history for each thing that clients may never see, and a neighbour that is right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.checkers.findings import Finding, Value
from chaos.checkers.partitions import judge_partitions, partition_histories
from chaos.history import HistoryDamaged
from tests.chaos.checkers.scripts import FAIL, KEY, UNKNOWN, Script, named


def judged(script: Script) -> list[Finding]:
    return judge_partitions(script.history)[0]


def only(script: Script) -> Finding:
    (finding,) = judged(script)
    assert finding.key == KEY
    return finding


def sent(*values: Value) -> Script:
    """Acknowledged one after the other, at offsets from 0."""
    script = Script()
    for offset, value in enumerate(values):
        script.send(value, offset)
    return script


def test_a_run_in_which_all_went_well() -> None:
    script = sent("a", "b", "c")
    script.poll((0, "a"), (1, "b"))
    script.poll()
    script.poll((2, "c"))
    script.poll((0, "a"), (1, "b"), (2, "c"), by="final")
    findings, counts = judge_partitions(script.history)
    assert findings == []
    assert counts == {"acked": 3, "read": 3, "unknown": 0, "failed": 0}


# -- lost and unseen


@pytest.mark.parametrize("reader", ["final", "consumer"])
def test_lost_an_acknowledged_record_behind_which_others_were_read(reader: str) -> None:
    script = sent("a", "b", "c")
    script.poll((0, "a"), (2, "c"), by=reader)
    finding = only(script)
    assert (finding.anomaly, finding.offsets, finding.values) == ("lost", (1,), ("b",))
    assert finding.words == "'b' at offset 1 is gone, though offset 2 was read"
    assert [each.op for each in finding.operations] == ["send", "poll"]


def test_lost_what_was_read_before_and_is_not_there_in_the_end() -> None:
    script = Script()
    script.send("a", outcome=UNKNOWN)
    script.send("b", 1)
    script.poll((0, "a"), (1, "b"))
    script.poll((1, "b"), by="final")
    finding = only(script)
    assert (finding.anomaly, finding.values) == ("lost", ("a",))


def test_not_lost_what_may_never_have_arrived() -> None:
    script = Script()
    script.send("a", outcome=UNKNOWN)
    script.send("b", outcome=FAIL)
    script.send("c", 0)
    script.send("d", outcome=UNKNOWN, at=(3.0, None))
    script.poll((0, "c"), by="final")
    findings, counts = judge_partitions(script.history)
    assert findings == []
    assert (counts["unknown"], counts["failed"]) == (2, 1)


def test_unseen_an_acknowledged_record_that_the_reads_did_not_reach() -> None:
    script = sent("a", "b")
    script.poll((0, "a"), by="final")
    finding = only(script)
    assert (finding.anomaly, finding.offsets, finding.values) == ("unseen", (1,), ("b",))


def test_unseen_where_nobody_was_told_an_offset_and_where_nobody_read() -> None:
    script = Script()
    script.send("a")
    assert only(script).anomaly == "unseen"
    script.poll((7, "a"), by="final")
    assert judged(script) == []
    script.send("b", 0, partition=1)
    (finding,) = judged(script)
    assert (finding.anomaly, finding.key) == ("unseen", "orders-1")


def test_a_final_reader_counts_even_if_others_read_more() -> None:
    script = sent("a", "b")
    script.poll((0, "a"), (1, "b"))
    assert judged(script) == []
    script.poll((0, "a"), by="final")
    assert only(script).anomaly == "unseen"


# -- one offset, one value


def test_duplicate_one_value_at_two_offsets() -> None:
    script = Script()
    script.send("a", 0)
    script.poll((0, "a"), (1, "a"), by="final")
    finding = only(script)
    assert (finding.anomaly, finding.offsets, finding.values) == ("duplicate", (0, 1), ("a",))


def test_duplicate_an_acknowledgement_that_names_another_place() -> None:
    script = Script()
    script.send("a", 3)
    script.poll((5, "a"), by="final")
    assert only(script).anomaly == "duplicate"


def test_no_duplicate_what_is_read_twice_at_one_place() -> None:
    script = sent("a")
    script.poll((0, "a"), by="one")
    script.poll((0, "a"), by="two")
    script.poll((0, "a"), by="final")
    assert judged(script) == []


def test_inconsistent_offsets_two_values_at_one_place() -> None:
    script = Script()
    script.send("a", 0)
    script.send("b", outcome=UNKNOWN)
    script.poll((0, "a"), by="final")
    script.poll((0, "b"))
    found = judged(script)
    assert named(found) == ["inconsistent offsets", "lost"]
    assert (found[0].offsets, found[0].values) == ((0,), ("a", "b"))
    assert found[0].words == "offset 0 holds 'a' and 'b'"


def test_inconsistent_offsets_two_acknowledgements_of_one_place() -> None:
    script = Script()
    script.send("a", 0, by="one")
    script.send("b", 0, by="two")
    assert "inconsistent offsets" in named(judged(script))


def test_one_offset_of_two_partitions_is_two_places() -> None:
    script = Script()
    script.send("a", 0)
    script.send("a", 0, partition=1)
    script.poll((0, "a"), by="final")
    script.poll((0, "a"), by="final", partition=1)
    assert judged(script) == []


# -- what nobody wrote


def test_phantom_read_of_a_value_that_was_never_sent() -> None:
    script = sent("a")
    script.poll((0, "a"), (1, "ghost"), by="final")
    finding = only(script)
    assert (finding.anomaly, finding.offsets, finding.values) == ("phantom read", (1,), ("ghost",))


def test_aborted_read_of_a_value_whose_send_surely_failed() -> None:
    script = sent("a")
    script.send("b", outcome=FAIL)
    script.poll((0, "a"), (1, "b"), by="final")
    finding = only(script)
    assert (finding.anomaly, finding.offsets, finding.values) == ("aborted read", (1,), ("b",))
    assert [each.outcome for each in finding.operations] == ["fail", "ok"]


def test_a_read_shows_that_an_unknown_send_arrived() -> None:
    script = sent("a")
    script.send("b", outcome=UNKNOWN)
    script.poll((0, "a"), (1, "b"), by="final")
    assert judged(script) == []


# -- the order of writes


def test_reordered_records_of_one_producer() -> None:
    script = Script()
    script.send("a", 1, at=(0.0, 5.0))
    script.send("b", 0, at=(1.0, 5.0))
    script.poll((0, "b"), (1, "a"), by="final")
    finding = only(script)
    assert (finding.anomaly, finding.offsets, finding.values) == ("reordered", (1, 0), ("a", "b"))
    assert finding.words == "'b' at 0 is before 'a' at 1, but was sent later by the same producer"


def test_records_of_two_producers_at_one_time_stand_in_any_order() -> None:
    script = Script()
    script.send("a", 1, by="one", at=(0.0, 5.0))
    script.send("b", 0, by="two", at=(1.0, 5.0))
    script.poll((0, "b"), (1, "a"), by="final")
    assert judged(script) == []


def test_reordered_what_was_sent_after_another_was_acknowledged() -> None:
    script = Script()
    script.send("a", 1, by="one")
    script.send("b", 0, by="two")
    script.poll((0, "b"), (1, "a"), by="final")
    finding = only(script)
    assert finding.anomaly == "reordered"
    assert finding.words.endswith("but was sent after the other was acked")


def test_reordered_also_what_was_never_acknowledged() -> None:
    script = Script()
    script.send("a", 1, by="one")
    script.send("b", by="two", outcome=UNKNOWN)
    script.poll((0, "b"), (1, "a"), by="final")
    assert only(script).anomaly == "reordered"


def test_what_ended_unknown_holds_up_nobody() -> None:
    script = Script()
    script.send("a", by="one", outcome=UNKNOWN)
    script.send("b", 0, by="two")
    script.poll((0, "b"), (1, "a"), by="final")
    assert judged(script) == []


# -- the way of consumers


def test_non_monotonic_poll_goes_back() -> None:
    script = sent("a", "b")
    script.poll((0, "a"), (1, "b"))
    script.poll((0, "a"))
    finding = only(script)
    assert (finding.anomaly, finding.offsets) == ("non-monotonic poll", (1, 0))


@pytest.mark.parametrize("second", [(0, "a"), (1, "b")])
def test_non_monotonic_poll_within_one_answer(second: tuple[int, str]) -> None:
    script = sent("a", "b")
    script.poll((1, "b"), second)
    script.poll((0, "a"), (1, "b"), by="final")
    assert only(script).anomaly == "non-monotonic poll"


def test_skipped_what_others_read() -> None:
    script = sent("a", "b", "c", "d")
    script.poll((0, "a"))
    script.poll((3, "d"))
    script.poll((0, "a"), (1, "b"), (2, "c"), (3, "d"), by="final")
    finding = only(script)
    assert (finding.anomaly, finding.offsets, finding.values) == ("skipped", (1, 2), ("b", "c"))


@pytest.mark.parametrize("move", ["assign", "seek", "subscribe"])
def test_a_consumer_that_is_moved_may_go_anywhere(move: str) -> None:
    script = sent("a", "b", "c")
    script.poll((2, "c"))
    script.operate("consumer", move, {"offset": 0})
    script.poll((0, "a"))
    script.operate("consumer", move, {"offset": 2})
    script.poll((2, "c"))
    script.poll((0, "a"), (1, "b"), (2, "c"), by="final")
    assert judged(script) == []


def test_one_consumer_that_is_moved_moves_no_other() -> None:
    script = sent("a", "b")
    script.poll((1, "b"))
    script.operate("other", "seek", {"offset": 0})
    script.poll((0, "a"))
    script.poll((0, "a"), (1, "b"), by="final")
    assert only(script).anomaly == "non-monotonic poll"


def test_offsets_that_no_client_ever_sees_are_not_skipped() -> None:
    script = Script()
    script.send("a", 0)
    script.send("b", 7)
    script.poll((0, "a"), (7, "b"))
    script.poll((0, "a"), (7, "b"), by="final")
    assert judged(script) == []


def test_values_are_sent_once() -> None:
    script = sent("a", "b", "a")
    with pytest.raises(HistoryDamaged, match="operations 0 and 2 send the same value 'a'"):
        partition_histories(script.history)


# -- any good run, and the same with one thing wrong


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, int]]:
    """What a partition holds: rising offsets with gaps, values in the order of their sending."""
    gaps = draw(st.lists(st.integers(1, 3), min_size=3, max_size=8))
    offsets = [sum(gaps[:end]) for end in range(1, len(gaps) + 1)]
    return [(offset, value) for value, offset in enumerate(offsets)]


def run_of(log: list[tuple[int, int]], producers: int, final: list[tuple[int, int]]) -> Script:
    script = Script()
    for offset, value in log:
        script.send(value, offset, by=f"producer-{value % producers}")
    cut = len(log) // 2
    for part in (log[:cut], log[cut:]):
        script.poll(*part)
    script.poll(*final, by="final")
    return script


@given(logs(), st.integers(1, 3))
def test_no_good_run_is_complained_about(log: list[tuple[int, int]], producers: int) -> None:
    assert judged(run_of(log, producers, log)) == []


@given(logs(), st.integers(1, 3), st.data())
def test_one_thing_wrong_is_found_wherever_it_is(
    log: list[tuple[int, int]], producers: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(log) - 2))
    gone = run_of(log, producers, log[:at] + log[at + 1 :])
    assert {"lost", "skipped"} >= set(named(judged(gone))) >= {"lost"}
    cut = run_of(log, producers, log[: at + 1])
    assert set(named(judged(cut))) == {"unseen"}
    again = run_of(log, producers, [*log, (log[-1][0] + 1, log[at][1])])
    assert named(judged(again)) == ["duplicate"]
    (one, a), (two, b) = log[at : at + 2]
    swapped = [*log[:at], (one, b), (two, a), *log[at + 2 :]]
    # All that clients were told is as it is in the log, and the log is in the wrong order.
    turned = run_of(sorted(swapped, key=lambda each: each[1]), producers, swapped)
    assert "reordered" in named(judged(turned))
