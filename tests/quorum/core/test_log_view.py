"""The view of a log against a plain list that holds the epoch of every record."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.types import EpochEnd
from quorum.core.log_view import NOT_IN_LOG, LogView, Position, VotersAt, view_of
from quorum.core.messages import BOOTSTRAP_SNAPSHOT, Batch, SnapshotId, VoterSet
from tests.quorum.core.cluster import voters_of

# -- a dumb log


@dataclass
class DumbLog:
    """The epoch of every record from offset 0 on, and where the log starts."""

    epochs: list[int] = field(default_factory=list)
    start: int = 0

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1] if self.epochs else 0

    def end_for_epoch(self, epoch: int) -> EpochEnd:
        """What is known of the log below its start is the epoch of the last record there."""
        known = [0, *self.epochs][self.start :]
        found = max((each for each in known if each <= epoch), default=None)
        if found is None:
            return EpochEnd(epoch, self.start)
        below = [at + 1 for at, each in enumerate(self.epochs) if each <= epoch]
        return EpochEnd(found, max([self.start, *below]))


COUNTS = st.integers(1, 3)
BATCHES = st.lists(st.tuples(st.integers(0, 2), COUNTS), max_size=8)
"""By how much the epoch rises, and how many records come."""


def both_logs(batches: list[tuple[int, int]]) -> tuple[LogView, DumbLog]:
    view, dumb, epoch = LogView(), DumbLog(), 0
    for rise, records in batches:
        epoch = max(1, epoch + rise)
        view.append(Batch(view.end_offset, epoch, records))
        dumb.epochs += [epoch] * records
    return view, dumb


def assert_same(view: LogView, dumb: DumbLog) -> None:
    assert view.end_offset == len(dumb.epochs)
    assert view.start_offset == dumb.start
    assert view.last_epoch == dumb.last_epoch
    for epoch in range(dumb.last_epoch + 3):
        assert view.end_for_epoch(epoch) == dumb.end_for_epoch(epoch), epoch
    for offset in range(dumb.start, len(dumb.epochs) + 1):
        assert view.epoch_before(offset) == [0, *dumb.epochs][offset]


@given(BATCHES)
def test_epochs_end_where_a_list_says(batches: list[tuple[int, int]]) -> None:
    assert_same(*both_logs(batches))


@given(BATCHES, st.data())
def test_a_truncated_view_is_the_view_of_a_shorter_log(
    batches: list[tuple[int, int]], data: st.DataObject
) -> None:
    view, dumb = both_logs(batches)
    view.flushed_offset = data.draw(st.integers(0, view.end_offset))
    flushed = view.flushed_offset
    end = data.draw(st.integers(0, view.end_offset))
    view.truncate(end)
    del dumb.epochs[end:]
    assert_same(view, dumb)
    assert view.flushed_offset == min(flushed, end)
    assert view.version == 1


@given(BATCHES.filter(bool), st.data())
def test_dropping_the_beginning_keeps_what_is_known_of_the_rest(
    batches: list[tuple[int, int]], data: st.DataObject
) -> None:
    view, dumb = both_logs(batches)
    for _ in range(2):
        at = data.draw(st.integers(dumb.start + 1, view.end_offset), label="snapshot")
        snapshot = SnapshotId(at, dumb.epochs[at - 1])
        view.add_snapshot(snapshot)
        view.drop_below(snapshot)
        dumb.start = at
        assert_same(view, dumb)
        if at == view.end_offset:
            break
    end = data.draw(st.integers(dumb.start, view.end_offset), label="cut")
    view.truncate(end)
    del dumb.epochs[end:]
    assert_same(view, dumb)


@given(BATCHES.filter(bool))
def test_a_log_that_begins_anew_at_a_snapshot(batches: list[tuple[int, int]]) -> None:
    view, _ = both_logs(batches)
    snapshot = SnapshotId(view.end_offset + 5, view.last_epoch + 1)
    view.restart_at(snapshot, voters_of(1, 2))
    assert (view.start_offset, view.end_offset, view.flushed_offset) == (snapshot.end_offset,) * 3
    assert view.last_epoch == snapshot.epoch
    assert view.epochs == []
    assert view.snapshots == [snapshot]
    assert view.latest_voters == VotersAt(snapshot.end_offset - 1, voters_of(1, 2))


# -- what to do with a fetch


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """The logs of a leader and of another replica, as Raft makes them: each epoch goes on from a
    prefix of a log of an earlier one.
    """
    logs: list[list[int]] = [[]]
    for epoch in range(1, draw(st.integers(1, 6)) + 1):
        base = draw(st.sampled_from(logs))
        kept = draw(st.integers(0, len(base)))
        logs.append(base[:kept] + [epoch] * draw(st.integers(1, 4)))
    leader = draw(st.sampled_from(logs[1:]))
    other = draw(st.sampled_from(logs))
    return leader, other[: draw(st.integers(0, len(other)))]


def view_of_epochs(epochs: list[int]) -> LogView:
    view = LogView()
    for offset, epoch in enumerate(epochs):
        view.append(Batch(offset, epoch, 1))
    return view


def shared(a: list[int], b: list[int]) -> int:
    """How far two logs are the same; by log matching that is where their epochs are."""
    return next((at for at in range(min(len(a), len(b))) if a[at] != b[at]), min(len(a), len(b)))


@given(histories())
def test_a_fetch_is_good_if_and_only_if_the_log_is_a_prefix_of_ours(
    logs: tuple[list[int], list[int]],
) -> None:
    leader, other = logs
    judged = view_of_epochs(leader).judge_fetch(len(other), other[-1] if other else 0)
    is_prefix = leader[: len(other)] == other
    assert (judged is None) == is_prefix
    if judged is not None:
        # P11: told where the logs part, and never to cut what both have.
        assert isinstance(judged, EpochEnd)
        assert judged.end_offset >= shared(leader, other) or judged.epoch < other[-1]


@given(histories(), st.data())
def test_a_log_that_begins_late_takes_only_those_that_share_what_it_lacks(
    logs: tuple[list[int], list[int]], data: st.DataObject
) -> None:
    leader, other = logs
    whole, late = view_of_epochs(leader), view_of_epochs(leader)
    at = data.draw(st.integers(1, len(leader)))
    snapshot = SnapshotId(at, leader[at - 1])
    late.add_snapshot(snapshot)
    late.drop_below(snapshot)
    asked = (len(other), other[-1] if other else 0)
    judged = late.judge_fetch(*asked)
    if len(other) < at:
        assert judged == snapshot
    elif other[:at] != leader[:at]:
        assert judged is not None  # cut first, and the snapshot comes next
    else:
        assert judged == whole.judge_fetch(*asked)


def test_who_has_nothing_gets_the_newest_snapshot_even_if_the_log_is_whole() -> None:
    # KIP-630: cheaper than all of the log.
    view = view_of_epochs([1, 1, 2])
    view.add_snapshot(SnapshotId(2, 1))
    assert view.judge_fetch(0, 0) == SnapshotId(2, 1)
    assert view.judge_fetch(1, 1) is None


def test_the_bootstrap_checkpoint_is_no_snapshot() -> None:
    view = view_of(start_offset=0, end_offset=0, epochs=[], voters=[])
    assert BOOTSTRAP_SNAPSHOT not in view.snapshots
    assert view.judge_fetch(0, 0) is None


# -- voters


def test_voters_act_when_appended_and_a_cut_takes_them_back() -> None:
    # KIP-853
    view = LogView(voter_history=[VotersAt(NOT_IN_LOG, voters_of(1, 2, 3))])
    view.append(Batch(0, 1, 1))
    view.append(Batch(1, 1, 1, control=voters_of(1, 2)))
    assert view.latest_voters == VotersAt(1, voters_of(1, 2))
    assert view.voters_at(1) == voters_of(1, 2, 3)
    assert view.voters_at(2) == voters_of(1, 2)
    view.truncate(1)
    assert view.latest_voters == VotersAt(NOT_IN_LOG, voters_of(1, 2, 3))


def test_of_the_changes_of_voters_only_the_latest_may_not_be_committed() -> None:
    # thesis 4.1
    view = LogView(voter_history=[VotersAt(NOT_IN_LOG, voters_of(1))])
    assert view.committed_voters(0) == voters_of(1)
    view.append(Batch(0, 1, 1, control=voters_of(1, 2)))
    view.append(Batch(1, 1, 1, control=voters_of(1, 2, 3)))
    assert view.committed_voters(0) == view.committed_voters(1) == voters_of(1, 2)
    assert view.committed_voters(2) == voters_of(1, 2, 3)


def test_a_replica_that_knows_nothing_has_no_voters() -> None:
    assert LogView().committed_voters(0) == VoterSet()
    assert LogView().latest_voters == VotersAt(NOT_IN_LOG, VoterSet())
    assert LogView().voters_at(5) == VoterSet()


def test_history_behind_the_start_is_forgotten() -> None:
    """Neither epochs nor voters nor snapshots grow with the age of a cluster."""
    view = LogView()
    for epoch in range(1, 200):
        view.append(Batch(view.end_offset, epoch, 1, control=voters_of(1, 2, 3 + epoch % 2)))
        view.append(Batch(view.end_offset, epoch, 1))
        snapshot = SnapshotId(view.end_offset, epoch)
        view.add_snapshot(snapshot)
        if epoch % 10 == 0:
            view.drop_below(snapshot)
            assert len(view.epochs) <= 1
            assert len(view.voter_history) == 1
            assert view.snapshots == [snapshot]
    assert view.latest_voters.voters == voters_of(1, 2, 4)


# -- what cannot be


def test_a_hole_and_a_falling_epoch_are_refused() -> None:
    view = view_of_epochs([1, 2])
    with pytest.raises(InvariantViolation, match="hole"):
        view.append(Batch(3, 2, 1))
    with pytest.raises(InvariantViolation, match="epoch falls"):
        view.append(Batch(2, 1, 1))


def test_a_cut_outside_the_log_is_refused() -> None:
    view = view_of_epochs([1, 2])
    view.add_snapshot(SnapshotId(1, 1))
    view.drop_below(SnapshotId(1, 1))
    for end in (0, 3):
        with pytest.raises(InvariantViolation, match="outside"):
            view.truncate(end)


def test_the_log_starts_behind_a_snapshot_that_is_there() -> None:
    # Q11
    view = view_of_epochs([1, 2])
    with pytest.raises(InvariantViolation, match="without a snapshot"):
        view.drop_below(SnapshotId(1, 1))


def test_positions_compare_by_epoch_first() -> None:
    # thesis 3.6.1
    assert Position(1, 9).is_behind(Position(2, 3))
    assert Position(2, 3).is_behind(Position(2, 4))
    assert not Position(2, 4).is_behind(Position(2, 4))


def test_an_opened_log_is_durable_and_its_flushed_position_is_its_end() -> None:
    view = view_of(start_offset=0, end_offset=7, epochs=[(1, 0), (3, 5)])
    assert view.flushed_position == view.position == Position(3, 7)
    view.flushed_offset = 5
    assert view.flushed_position == Position(1, 5)
