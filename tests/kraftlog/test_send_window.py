"""The rules of retries, against the very code that a leader judges producers with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.delivery import Delivery
from kraftlog.errors import (
    AmbiguousError,
    InvalidProducerEpoch,
    InvalidRecord,
    KraftError,
    NetworkError,
    NotEnoughReplicas,
    OutOfOrderSequence,
)
from kraftlog.record_batch import RecordBatch, encode_values
from kraftlog.send_window import Batch, ProducerIdentity, SendWindow
from storage.producer_state import ProducerStates
from tests.storage.logs import TIME_MS


def batch(number: int = 0, count: int = 1) -> Batch:
    made = Batch(Delivery("t", 0), 0.0)
    made.values = [b"%d" % number] * count
    made.count = count
    return made


class Leader:
    """A partition's log as far as producers notice it."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self.states = ProducerStates("model")

    def append(self, request: "Request") -> int:
        producer_id, epoch, sequence = request.producer
        view = RecordBatch(
            encode_values(
                [b"%d" % request.number],
                timestamp=TIME_MS,
                base_offset=len(self.values),
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
            )
        )
        duplicate = self.states.check(view)
        if duplicate is not None:
            return duplicate.base_offset
        self.states.update(view)
        self.values.append(request.number)
        return view.base_offset

    def restart(self) -> None:
        """Of each producer a snapshot keeps the last batch alone."""
        kept = ProducerStates("model")
        for producer in self.states._producers.values():
            while len(producer.batches) > 1:
                producer.batches.popleft()
        kept._producers = self.states._producers
        self.states = kept


class Request:
    """What was written to the network: later changes of the batch do not reach it."""

    def __init__(self, sent: Batch, number: int) -> None:
        assert sent.identity is not None
        self.batch = sent
        self.number = number
        self.producer = (*sent.identity, sent.base_sequence)


class World:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.window = SendWindow(limit, idempotent=True)
        self.window.set_identity(ProducerIdentity(7, 0))
        self.leader = Leader()
        self.flying: list[Request] = []
        self.ghosts: list[Request] = []
        """Requests of a stream that was given up, still on their way to the leader."""
        self.numbers: dict[Batch, int] = {}
        self.acked: dict[int, int] = {}
        self.failed: dict[int, KraftError] = {}

    def act(self, action: str) -> None:
        getattr(self, action)()
        for lost in self.window.settle():
            self.failed[self.numbers[lost]] = AmbiguousError("unsure")
        assert sum(each.in_flight for each in self.window.batches) <= self.limit
        if self.window.wants_identity and not self.window.is_settling:
            self.window.set_identity(ProducerIdentity(self.window.lost_producer_id + 1, 0))

    def send(self) -> None:
        again = self.window.next_again()
        if again is None:
            if not self.window.takes_new():
                return
            again = batch(len(self.numbers))
            self.numbers[again] = len(self.numbers)
            self.window.take(again)
        self.window.start(again)
        self.flying.append(Request(again, self.numbers[again]))

    def answer(self) -> None:
        """The leader handles the oldest request, and the answer arrives."""
        if self.flying:
            request = self.flying.pop(0)
            try:
                offset = self.leader.append(request)
            except KraftError as error:
                self.fail(request.batch, error)
            else:
                self.window.on_ack(request.batch)
                self.acked[request.number] = offset

    def fail(self, sent: Batch, error: KraftError) -> None:
        ending = self.window.on_failure(sent, error)
        if ending is not None:
            self.failed[self.numbers[sent]] = ending

    def refuse(self) -> None:
        if self.flying:
            self.fail(self.flying.pop(0).batch, NotEnoughReplicas("for now"))

    def refuse_for_good(self) -> None:
        if self.flying:
            self.fail(self.flying.pop(0).batch, InvalidRecord("for good"))

    def break_stream(self) -> None:
        """Some requests were handled, the others may still be; no answer comes."""
        flying, self.flying = self.flying, []
        self.ghosts += flying
        for request in flying:
            self.fail(request.batch, NetworkError("gone"))

    def arrive_late(self) -> None:
        if self.ghosts:
            try:
                self.leader.append(self.ghosts.pop(0))
            except KraftError:
                return

    def lose(self) -> None:
        """A request that never arrives, and is not answered in time."""
        if self.flying:
            self.fail(self.flying.pop().batch, NetworkError("late"))

    def expire(self) -> None:
        if self.window.batches and not self.window.batches[0].given_up:
            oldest = self.window.batches[0]
            unsure = oldest.maybe_appended or oldest.in_flight
            self.window.drop(oldest)
            self.failed[self.numbers[oldest]] = (
                AmbiguousError("expired") if unsure else NotEnoughReplicas("expired")
            )

    def restart_leader(self) -> None:
        self.leader.restart()

    def crash_leader(self) -> None:
        """All that was under way is in the log, no answer comes, and little is remembered."""
        self.break_stream()
        while self.ghosts:
            self.arrive_late()
        self.leader.restart()

    def send_two(self) -> None:
        self.send()
        self.send()


ACTIONS = [
    "send",
    "send_two",
    "send_two",
    "answer",
    "answer",
    "answer",
    "refuse",
    "refuse_for_good",
    "break_stream",
    "arrive_late",
    "lose",
    "expire",
    "restart_leader",
    "crash_leader",
]


# R34: whatever is lost, late, refused or given up: no duplicate, no reordering, no false answer.
@given(st.lists(st.sampled_from(ACTIONS), min_size=40, max_size=120), st.integers(2, 5))
def test_no_duplicate_no_reordering(actions: list[str], limit: int) -> None:
    world = World(limit)
    for action in actions:
        world.act(action)
    for _ in range(200):  # and when the trouble is over, all that was not given up arrives
        if not world.window.batches:
            break
        world.act("arrive_late")
        world.act("send" if world.window.next_again() is not None else "answer")
        world.act("answer")
    log = world.leader.values
    assert log == sorted(set(log))
    assert all(log[offset] == number for number, offset in world.acked.items())
    for number, error in world.failed.items():
        if not error.outcome_unknown:
            assert number not in log
    assert world.numbers.keys() - {*world.window.batches} == {
        sent
        for sent, number in world.numbers.items()
        if number in world.acked or number in world.failed
    }
    assert not world.window.batches


def sent(window: SendWindow, *batches: Batch) -> None:
    for each in batches:
        window.take(each)
        window.start(each)


def established(limit: int = 5) -> SendWindow:
    """A window whose leader knows the producer: one record has been acknowledged."""
    window = SendWindow(limit, idempotent=True)
    window.set_identity(ProducerIdentity(7, 0))
    first = batch()
    sent(window, first)
    window.on_ack(first)
    return window


def test_numbers_follow_each_other() -> None:
    window = established()
    three, two = batch(count=3), batch(count=2)
    sent(window, three, two)
    assert (three.base_sequence, two.base_sequence) == (1, 4)
    assert window.takes_new()


def test_numbers_wrap_as_the_brokers_count_them() -> None:
    window = established()
    window._next_sequence = 2**31 - 2
    last, wrapped = batch(count=3), batch()
    sent(window, last, wrapped)
    assert (last.base_sequence, wrapped.base_sequence) == (2**31 - 2, 1)


def test_the_first_batch_of_an_identity_goes_alone() -> None:
    window = SendWindow(5, idempotent=True)
    assert not window.takes_new()
    window.set_identity(ProducerIdentity(7, 0))
    first = batch()
    assert window.takes_new()
    sent(window, first)
    assert not window.takes_new()
    window.on_ack(first)
    assert window.takes_new()


def test_at_most_five_are_under_way() -> None:
    window = established()
    sent(window, *(batch(number) for number in range(5)))
    assert not window.takes_new()
    with pytest.raises(InvariantViolation):
        SendWindow(6, idempotent=True)


def test_after_a_failure_nothing_moves_until_all_is_answered() -> None:
    window = established()
    one, two, three = batch(1), batch(2), batch(3)
    sent(window, one, two, three)
    assert window.on_failure(one, NetworkError("gone")) is None
    assert window.next_again() is None
    assert not window.takes_new()
    assert window.on_failure(two, OutOfOrderSequence("one is missing")) is None
    assert window.settle() == []
    assert window.next_again() is None
    assert window.on_failure(three, OutOfOrderSequence("one is missing")) is None
    assert window.settle() == []
    again = []
    while (batch_again := window.next_again()) is not None:
        window.start(batch_again)
        again.append(batch_again)
    assert again == [one, two, three]
    assert [each.base_sequence for each in again] == [1, 2, 3]
    assert [each.attempts for each in again] == [2, 2, 2]


def test_a_leader_that_lost_track_makes_a_new_epoch() -> None:
    window = established()
    one, two = batch(1), batch(2)
    sent(window, one, two)
    window.on_failure(one, InvalidRecord("never"))
    assert window.on_failure(two, OutOfOrderSequence("a gap")) is None
    assert window.settle() == []
    assert window.identity == ProducerIdentity(7, 1)
    assert (two.identity, two.base_sequence) == (ProducerIdentity(7, 1), 0)
    assert window.next_again() is two


def test_what_may_be_in_the_log_is_never_sent_under_new_numbers() -> None:
    window = established()
    one, two = batch(1), batch(2)
    sent(window, one, two)
    window.on_failure(one, NetworkError("gone"))
    window.on_failure(two, NetworkError("gone"))
    window.settle()
    window.start(one)
    ending = window.on_failure(one, OutOfOrderSequence("which one?"))
    assert isinstance(ending, AmbiguousError)
    window.settle()
    assert window.next_again() is two
    assert window.identity == ProducerIdentity(7, 0)


def test_what_is_unsure_behind_a_gap_is_not_numbered_anew() -> None:
    window = established()
    one, two = batch(1), batch(2)
    sent(window, one, two)
    window.on_failure(one, OutOfOrderSequence("lost track"))
    window.on_failure(two, NetworkError("gone"))
    assert window.settle() == [two]
    assert list(window.batches) == [one]


def test_a_refusal_does_not_say_what_became_of_an_earlier_attempt() -> None:
    window = established()
    one = batch(1)
    sent(window, one)
    window.on_failure(one, NetworkError("gone"))
    window.settle()
    window.start(one)
    ending = window.on_failure(one, InvalidRecord("no longer allowed"))
    assert isinstance(ending, AmbiguousError)


def test_a_fenced_identity_is_replaced() -> None:
    window = established()
    one = batch(1)
    sent(window, one)
    assert window.on_failure(one, InvalidProducerEpoch("7 has a newer epoch")) is None
    assert window.settle() == []
    assert window.wants_identity
    assert window.lost_producer_id == 7
    window.set_identity(ProducerIdentity(8, 0))
    assert (one.identity, one.base_sequence) == (ProducerIdentity(8, 0), 0)


def test_epochs_end_and_then_a_new_id_is_wanted() -> None:
    window = SendWindow(5, idempotent=True)
    window.set_identity(ProducerIdentity(7, 2**15 - 1))
    one = batch(1)
    sent(window, one)
    window.on_failure(one, OutOfOrderSequence("lost"))
    window.settle()
    assert window.wants_identity


def test_halves_take_the_numbers_of_the_whole() -> None:
    window = established()
    large, after = batch(1, count=5), batch(2)
    sent(window, large, after)
    halves = [batch(1, count=2), batch(1, count=3)]
    window.split(large, halves)
    assert window.on_failure(after, OutOfOrderSequence("behind it")) is None
    window.settle()
    assert [each.base_sequence for each in window.batches] == [1, 3, 6]


def test_a_new_topic_of_the_same_name_begins_anew() -> None:
    window = established()
    one = batch(1)
    sent(window, one)
    window.on_failure(one, NetworkError("gone"))
    window.restart()
    assert window.settle() == []
    assert window.next_again() is one
    assert (one.identity, one.base_sequence) == (ProducerIdentity(7, 1), 0)


def test_without_idempotence_an_unknown_fate_is_the_end() -> None:
    window = SendWindow(5, idempotent=False)
    one, two = batch(1), batch(2)
    sent(window, one, two)
    assert one.identity is None
    assert isinstance(window.on_failure(one, NetworkError("gone")), NetworkError)
    assert window.on_failure(two, NotEnoughReplicas("for now")) is None
    window.settle()
    assert window.next_again() is two


def test_what_was_given_up_under_way_is_forgotten_when_it_lands() -> None:
    window = established()
    one = batch(1)
    sent(window, one)
    window.drop(one)
    assert window.on_failure(one, NetworkError("late")) is None
    assert not window.batches
