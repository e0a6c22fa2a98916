"""The queue of the active controller: what is answered when, and what a lost leadership means."""

from collections.abc import Callable, Iterator

from kraftlog.errors import (
    KraftError,
    NotController,
    RecordTooLarge,
    RequestTimedOut,
    ThrottledError,
    TimeoutError_,
    TopicExists,
)
from kraftlog.types import Uuid
from metadata_log.decide import caused
from metadata_log.image import EMPTY, Image
from metadata_log.places import Agenda
from metadata_log.records import Cause, CauseKind, TopicRecord
from metadata_log.snapshot import digest
from quorum import controller as module
from quorum.controller import Answer, Controller, Once, Operation, Step
from quorum.core.messages import SnapshotId, VoterSet
from quorum.snapshot_file import open_snapshot, snapshot_name, write_snapshot
from storage.model_disk import ModelDisk
from tests.quorum.ledger import ListLedger

CAUSE = Cause(CauseKind.ADMIN_REQUEST, "a test")


def made() -> tuple[Controller, ListLedger]:
    controller = Controller(1, leader_hint=lambda: "node 2 leads")
    ledger = ListLedger(controller)
    controller.attach(ledger)
    return controller, ledger


def active() -> tuple[Controller, ListLedger]:
    controller, ledger = made()
    ledger.lead(1)
    return controller, ledger


def topic(name: str) -> TopicRecord:
    return TopicRecord(name, Uuid(name.encode().ljust(16, b"-")))


def create(name: str, answers: list[Answer], **options: Once | int | None) -> Operation:
    """Creates a topic, or refuses if it is there."""

    def decide(image: Image, _: Agenda | None) -> Step:
        if image.topic(name) is not None:
            raise TopicExists(name)
        return Step(caused(CAUSE, topic(name)), lambda end: f"{name} at {end}".encode())

    operation = Operation(f"create {name}", decide, answers.append)
    once, deadline_ms = options.get("once"), options.get("deadline_ms")
    operation.once = once if isinstance(once, Once) else None
    operation.deadline_ms = deadline_ms if isinstance(deadline_ms, int) else None
    return operation


def names(image: Image) -> list[str]:
    return sorted(each.name for each in image.topics.values())


def test_an_answer_waits_for_the_commit() -> None:
    controller, ledger = active()
    answers: list[Answer] = []
    controller.submit(create("a", answers))
    assert ledger.batches[1:] == []  # decided in the node's turn, not in the caller's
    ledger.run()
    assert names(controller.pending) == ["a"]
    assert names(controller.committed) == []
    assert answers == []
    ledger.commit()
    assert answers == [b"a at 2"]
    assert controller.committed is controller.pending


def test_the_next_decision_sees_what_is_pending() -> None:
    controller, ledger = active()
    first: list[Answer] = []
    second: list[Answer] = []
    controller.submit(create("a", first))
    controller.submit(create("a", second))
    ledger.run()
    assert second == []  # even a refusal may rest on what never comes to be
    ledger.commit()
    assert first == [b"a at 2"]
    assert isinstance(second[0], TopicExists)


def test_each_answer_waits_for_no_more_than_it_rests_on() -> None:
    controller, ledger = active()
    first: list[Answer] = []
    second: list[Answer] = []
    controller.submit(create("a", first))
    controller.submit(create("b", second))
    ledger.run()
    ledger.commit(1)
    assert (first, second) == ([b"a at 2"], [])
    assert names(controller.committed) == ["a"]
    ledger.commit(1)
    assert second == [b"b at 3"]


def test_a_standby_replays_as_it_goes_and_takes_over_with_all_of_it() -> None:
    # R3, R6
    leader, log = active()
    for name in "abc":
        leader.submit(create(name, []))
    log.settle()
    standby, other = made()
    other.batches, other.end = list(log.batches), log.end
    other.commit()
    assert digest(standby.committed) == digest(leader.committed)
    assert not standby.is_active
    other.lead(2)
    assert standby.epoch == 2
    assert names(standby.pending) == ["a", "b", "c"]


def test_only_the_active_controller_decides() -> None:
    controller, ledger = made()
    answers: list[Answer] = []
    controller.submit(create("a", answers))
    assert isinstance(answers[0], NotController)
    assert "node 2 leads" in answers[0].hint
    assert ledger.batches == []


def test_a_lost_leadership_makes_what_was_begun_unknown_and_drops_pending() -> None:
    controller, ledger = active()
    begun: list[Answer] = []
    waiting: list[Answer] = []
    controller.submit(create("a", begun))
    ledger.run()
    controller.submit(create("b", waiting))
    ledger.lose()
    assert isinstance(begun[0], RequestTimedOut)
    assert isinstance(waiting[0], NotController)
    assert controller.pending is controller.committed
    ledger.run()  # what was posted finds nothing to do
    assert len(begun) == len(waiting) == 1


def test_what_was_unknown_is_committed_after_all() -> None:
    controller, ledger = active()
    begun: list[Answer] = []
    controller.submit(create("a", begun))
    ledger.run()
    ledger.lose()
    ledger.commit()
    assert names(controller.committed) == ["a"]
    ledger.lead(3)
    assert names(controller.pending) == ["a"]


def test_what_was_unknown_never_happened() -> None:
    controller, ledger = active()
    controller.submit(create("a", []))
    ledger.run()
    ledger.lose()
    ledger.cut()
    ledger.lead(3)
    answers: list[Answer] = []
    controller.submit(create("a", answers))
    ledger.settle()
    assert answers == [b"a at 3"]


def test_leadership_may_go_while_a_batch_is_appended() -> None:
    controller, ledger = active()
    answers: list[Answer] = []
    ledger.lose_in_append = True
    controller.submit(create("a", answers))
    ledger.run()
    assert isinstance(answers[0], RequestTimedOut)
    assert controller.pending is controller.committed
    ledger.commit()
    assert names(controller.committed) == ["a"]


# -- the same request twice  # M3


def test_a_repeat_is_answered_with_the_first_result() -> None:
    controller, ledger = active()
    once = Once(b"client", 7)
    first: list[Answer] = []
    again: list[Answer] = []
    controller.submit(create("a", first, once=once))
    ledger.settle()
    controller.submit(create("a", again, once=once))
    assert first == again == [b"a at 3"]
    other: list[Answer] = []
    controller.submit(create("a", other, once=Once(b"client", 8)))
    ledger.settle()
    assert isinstance(other[0], TopicExists)


def test_a_repeat_of_one_that_is_pending_waits_for_it() -> None:
    controller, ledger = active()
    once = Once(b"client", 7)
    first: list[Answer] = []
    queued: list[Answer] = []
    proposed: list[Answer] = []
    controller.submit(create("a", first, once=once))
    controller.submit(create("a", queued, once=once))
    ledger.run()
    controller.submit(create("a", proposed, once=once))
    assert first == queued == proposed == []
    ledger.settle()
    assert first == queued == proposed == [b"a at 3"]


def test_the_next_controller_knows_the_first_result() -> None:
    leader, log = active()
    once = Once(b"client", 7)
    lost: list[Answer] = []
    leader.submit(create("a", lost, once=once))
    log.run()
    log.lose()
    assert isinstance(lost[0], RequestTimedOut)
    successor, other = made()
    other.batches, other.end = list(log.batches), log.end
    other.lead(2)
    answers: list[Answer] = []
    successor.submit(create("a", answers, once=once))
    assert answers == [b"a at 3"]


def test_a_refused_request_may_be_tried_again() -> None:
    controller, ledger = active()
    once = Once(b"client", 7)
    answers: list[Answer] = []
    ledger.values_max = 0
    controller.submit(create("a", answers, once=once))
    ledger.settle()
    assert isinstance(answers[0], RecordTooLarge)
    ledger.values_max = 10
    controller.submit(create("a", answers, once=once))
    ledger.settle()
    assert answers[1] == b"a at 3"


# -- bounds


def test_an_oversized_decision_changes_nothing() -> None:
    controller, ledger = active()
    answers: list[Answer] = []
    ledger.values_max = 0
    controller.submit(create("a", answers))
    ledger.run()
    assert isinstance(answers[0], RecordTooLarge)
    assert controller.pending is EMPTY
    assert controller.is_active


def test_a_full_queue_refuses() -> None:
    controller, _ledger = active()
    answers: list[Answer] = []
    for number in range(module.QUEUE_MAX):
        controller.submit(create(f"t{number}", []))
    controller.submit(create("one more", answers))
    assert isinstance(answers[0], ThrottledError)
    assert controller.queued == module.QUEUE_MAX


def test_a_full_inbox_of_the_node_refuses() -> None:
    controller, ledger = active()
    ledger.work_max = 0
    answers: list[Answer] = []
    controller.submit(create("a", answers))
    assert isinstance(answers[0], ThrottledError)
    assert controller.queued == 0


def test_what_waited_too_long_is_not_begun() -> None:
    controller, ledger = active()
    answers: list[Answer] = []
    controller.submit(create("a", answers, deadline_ms=100))
    ledger.now = 101
    ledger.settle()
    assert isinstance(answers[0], TimeoutError_)
    assert controller.pending is EMPTY
    assert (controller.counts.operations, controller.counts.operations_timed_out) == (0, 1)


def test_how_long_operations_wait_and_take_is_told() -> None:
    controller, ledger = active()
    waited: list[float] = []
    took: list[float] = []
    controller.observe_queue, controller.observe_decision = waited.append, took.append
    slow = create("a", [])
    decide = slow.decide

    def slowly(image: Image, agenda: Agenda | None) -> Step:
        ledger.now += 250
        return decide(image, agenda)

    slow.decide = slowly
    controller.submit(slow)
    controller.submit(create("b", []))
    ledger.now += 100
    ledger.settle()
    assert (waited, took) == ([0.1, 0.35], [0.25, 0.0])
    assert (controller.counts.operations, controller.counts.leaders_seen) == (2, 1)


# -- work in parts


def in_parts(parts: Iterator[str], answers: list[Answer], *, count: int) -> Operation:
    """Creates `count` topics, one in each part; how many are left is in the agenda's size."""

    def decide(_: Image, agenda: Agenda | None) -> Step:
        left = count if agenda is None else len(agenda)
        rest = Agenda(((Uuid(bytes(16)), (1 << left - 1) - 1),)) if left > 1 else None
        return Step(caused(CAUSE, topic(next(parts))), lambda end: b"done at %d" % end, rest)

    return Operation("create in parts", decide, answers.append)


def test_work_in_parts_lets_others_in_between() -> None:
    controller, ledger = active()
    answers: list[Answer] = []
    between: list[Answer] = []
    controller.submit(in_parts(iter("abc"), answers, count=3))
    controller.submit(create("x", between))
    ledger.settle()
    assert answers == [b"done at 5"]
    assert between == [b"x at 3"]


def test_leadership_lost_between_two_parts_is_unknown() -> None:
    controller, ledger = active()
    answers: list[Answer] = []
    controller.submit(in_parts(iter("abc"), answers, count=3))
    ledger.work.popleft()()
    ledger.lose()
    ledger.run()
    assert len(answers) == 1
    assert isinstance(answers[0], RequestTimedOut)


# -- duties and snapshots


class Recorder:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def begin(self) -> None:
        self.heard.append("begin")

    def end(self) -> None:
        self.heard.append("end")


def test_duties_hear_of_every_change() -> None:
    controller, ledger = made()
    duty = Recorder()
    controller.attach(ledger, duty)
    ledger.lead(1)
    ledger.lead(2)  # again, without having noticed the loss
    ledger.lose()
    ledger.lose(leader_id=3)
    assert duty.heard == ["begin", "end", "begin", "end"]


def test_a_snapshot_is_the_committed_image() -> None:
    # Q11, bug 18
    controller, ledger = active()
    for name in "ab":
        controller.submit(create(name, []))
    ledger.settle()
    controller.submit(create("c", []))
    ledger.run()
    disk, snapshot = ModelDisk(), SnapshotId(3, 1)
    disk.make_dir("m")
    write_snapshot(disk, "m", snapshot, VoterSet(), controller.dump(), timestamp=0)
    other, _log = made()
    loading = other.handle_snapshot(open_snapshot(disk, f"m/{snapshot_name(snapshot)}", snapshot))
    next(loading)
    assert names(other.committed) == [], "what it had, until the end"
    assert list(loading) == []
    assert names(other.committed) == ["a", "b"]
    assert digest(other.committed) == digest(controller.committed)
    assert other.committed.end_offset == 3


def test_errors_are_answers_too() -> None:
    controller, ledger = active()
    answers: list[Answer] = []
    refuse: Callable[[Image, Agenda | None], Step] = _refuse
    controller.submit(Operation("refuse", refuse, answers.append))
    ledger.run()
    assert isinstance(answers[0], KraftError)


def _refuse(_image: Image, _agenda: Agenda | None) -> Step:
    raise TopicExists("refused")
