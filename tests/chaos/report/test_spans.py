import pytest

from chaos.history import Event, History, Json
from chaos.report.spans import (
    SPANS_MAX,
    Span,
    covered,
    fault_spans,
    longest,
    partition_spans,
    phase_spans,
    reign_spans,
)
from tests.chaos.report.runs import a_broken_leader, controller, fault, heal, phase, state


def faults(*events: Event, end: float = 10.0) -> list[tuple[str, str, float, float, bool]]:
    found = fault_spans(History((), events, end))
    return [(each.lane, each.label, each.begin, each.end, each.is_open) for each in found]


def test_a_fault_lasts_until_its_target_is_healed() -> None:
    found = faults(
        fault(1, "kill -9", "c1"),
        fault(2, "SIGSTOP", "b1"),
        heal(3, "down", "c1"),
        fault(4, "kill -9", "c1"),
        heal(5, "SIGSTOP", "b1"),
    )
    assert found == [
        ("c1", "kill -9", 1, 3, False),
        ("b1", "SIGSTOP", 2, 5, False),
        ("c1", "kill -9", 4, 10, True),
    ]


def test_healed_edges_leave_a_killed_node_down() -> None:
    found = faults(
        fault(1, "cut", "c1->c2"),
        fault(1, "kill -9", "b1"),
        fault(1, "SIGSTOP", "b2"),
        heal(3, "edges", "all"),
        heal(4, "down", "b1"),
    )
    assert found == [
        ("b1", "kill -9", 1, 4, False),
        ("b2", "SIGSTOP", 1, 10, True),
        ("c1->c2", "cut", 1, 3, False),
    ]


def test_a_heal_of_everything_ends_everything() -> None:
    everything = Event(2, "heal", {"target": "all"})
    assert faults(fault(1, "kill -9", "c1"), everything) == [("c1", "kill -9", 1, 2, False)]


def test_a_damaged_file_is_healed_with_its_node_and_no_other() -> None:
    found = faults(fault(1, "corrupt tail", "b1 00.log"), heal(2, "down", "b"), heal(3, "", "b1"))
    assert found == [("b1 00.log", "corrupt tail", 1, 3, False)]


@pytest.mark.parametrize(
    ("until", "end"),
    [(4, 4), (0.5, 1), (99, 10), (True, 10), ("4", 10), (float("nan"), 10), (10**400, 10)],
)
def test_a_fault_may_say_itself_when_it_ends(until: Json, end: float) -> None:
    ((*_, found, _),) = faults(fault(1, "slow", "c1", until=until))
    assert found == end


def test_facts_of_a_fault_are_its_details() -> None:
    (span,) = fault_spans(History((), (fault(1, "slow", "c1", ms=200, jitter=None),), 2))
    assert span.detail == "ms 200, jitter "


def test_an_epoch_lasts_until_the_next_is_seen() -> None:
    history = History((), (controller(1, "c1", 1), controller(3, "c2", 2)), 9)
    assert reign_spans(history) == [
        Span("c1", 1, 3, "epoch 1"),
        Span("c2", 3, 9, "epoch 2", is_open=True),
    ]


def test_phases_follow_each_other() -> None:
    spans = phase_spans(History((), (phase(0, "start"), phase(2, "warm")), 5))
    assert [(each.label, each.seconds, each.is_open) for each in spans] == [
        ("start", 2, False),
        ("warm", 3, True),
    ]


def test_partitions_show_leader_epoch_and_isr_and_when_it_shrank() -> None:
    spans = [each for each in partition_spans(a_broken_leader()) if each.lane == "orders-0"]
    assert [(each.label, each.detail, each.is_short) for each in spans] == [
        ("b1", "epoch 0, ISR b1 b2 b3", False),
        ("no leader", "epoch 1, ISR b2 b3", True),
        ("b2", "epoch 2, ISR b2 b3", True),
        ("b2", "epoch 2, ISR b2 b3 b1", False),
    ]
    assert [each.begin for each in spans[1:]] == [each.end for each in spans[:-1]]
    assert [each.is_open for each in spans] == [False, False, False, True]


def test_a_partition_that_grows_was_not_short_before() -> None:
    events = (state(0, "b1", 0, "b1"), state(1, "b1", 0, "b1", "b2"), state(2, "b1", 0))
    spans = partition_spans(History((), events, 3))
    assert [each.is_short for each in spans] == [False, False, True]
    assert spans[2].detail.endswith("ISR empty")


def test_times_that_overlap_are_shaded_once() -> None:
    spans = [Span("", 5, 6, ""), Span("", 1, 4, ""), Span("", 2, 3, ""), Span("", 4, 4.5, "")]
    assert covered(spans) == [(1, 4.5), (5, 6)]


def test_of_too_many_the_longest_are_kept_in_order() -> None:
    spans = [Span("c1", t, t + 1 + t % 3, "") for t in range(30)]
    kept = longest(spans, 10)
    assert len(kept) == 10
    assert {each.seconds for each in kept} == {3}
    assert kept == sorted(kept, key=lambda each: each.begin)
    assert longest(spans) == spans
    assert len(longest(spans * 100)) == SPANS_MAX


def test_nothing_recorded_nothing_lasted() -> None:
    empty = History(())
    assert [*fault_spans(empty), *reign_spans(empty), *partition_spans(empty)] == []


def test_events_without_their_facts_are_drawn_as_they_are() -> None:
    events = tuple(Event(1, what, {}) for what in ("fault", "heal", "controller", "leader", "isr"))
    history = History((), events, 2)
    assert [each.lane for each in fault_spans(history)] == [""]
    assert [each.label for each in reign_spans(history)] == ["epoch "]
    assert {each.label for each in partition_spans(history)} == {"no leader"}
