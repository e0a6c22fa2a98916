from chaos.history import Event, History
from chaos.report.story import story
from tests.chaos.report.runs import a_broken_leader, fault, phase, state


def told(*events: Event) -> list[str]:
    return [each.words for each in story(History((), events, 9.0))]


def test_a_run_is_told_from_its_beginning_to_its_end() -> None:
    lines = [f"{each.t:g} {each.words}" for each in story(a_broken_leader())]
    assert lines == [
        "0 The cluster starts.",
        "0.5 Controller c1 leads the quorum in epoch 1.",
        "1 All nodes are up; clients send and read, and nothing is broken yet.",
        "2 The drill begins to break things.",
        "2 Fault: slow on c1->c2.",
        "2.5 Fault: kill -9 on b1.",
        "2.6 Fault: cut on c1->c2.",
        "3.4 The controller counts b1 as down.",
        "3.4 orders-0: b1 → no leader; in sync: b2 b3.",
        "3.5 orders-0: no leader → b2; in sync: b2 b3.",
        "3.5 orders-1: b1 out of sync; in sync: b2 b3.",
        "4 Controller c3 leads the quorum in epoch 2.",
        "5 Healed: all edges.",
        "6 Healed: b1.",
        "6 The drill heals what is still broken.",
        "7 orders-0: b1 in sync again; in sync: b2 b3 b1.",
        "8 The clients stop; every partition is read once more from its start.",
    ]


def test_a_replica_may_go_and_another_come_at_once() -> None:
    assert told(state(0, "b1", 0, "b1", "b2"), state(1, "b1", 0, "b1", "b3")) == [
        "orders-0: b2 out of sync; in sync: b1 b3.",
        "orders-0: b3 in sync again; in sync: b1 b3.",
    ]


def test_brokers_come_back() -> None:
    assert told(Event(0, "brokers", {"up": ["b1"]}), Event(1, "brokers", {"up": ["b1", "b2"]})) == [
        "The controller counts b2 as up."
    ]


def test_what_has_not_changed_is_not_told() -> None:
    same = state(0, "b1", 0, "b1", "b2")
    assert told(same, Event(1, "isr", {**same.facts, "isr": ["b2", "b1"]})) == []
    assert told(Event(0, "committed", {"leader": "c1"}), Event(0, "note", {})) == []


def test_odd_events_are_told_as_they_are() -> None:
    assert told(phase(0, "encore"), Event(1, "heal", {"target": "all"}), fault(2, "", "")) == [
        "Phase: encore.",
        "Healed: all faults.",
        "Fault:  on .",
    ]
