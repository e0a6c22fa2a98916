"""The state of a partition, rule by rule. tests/brokers/test_partition_machine.py lets anything
happen that can.
"""

from dataclasses import replace

import pytest

from brokers.cluster import NO_LEADER
from brokers.effects import (
    BelowMinIsr,
    MoveHighWatermark,
    StartFollowing,
    StartLeading,
    StopFollowing,
    StopLeading,
)
from brokers.isr import CommittedIsr
from brokers.partition_state import INELIGIBLE_PAUSE_MS
from brokers.progress import FollowerFetch, SessionClock
from brokers.refusals import Refused
from brokers.requests import IsrResult
from kraftlog._check import InvariantViolation
from kraftlog.errors import ErrorCode
from tests.brokers.states import FIRST, LAG_MS, PARTITION, Leader, moved_to, proposal, proposed

# -- the high watermark


def test_the_high_watermark_is_the_lowest_end_in_the_isr() -> None:
    leader = Leader()
    leader.append(10)
    assert moved_to(leader.fetch(2, 7)) is None  # nothing is known of 3
    assert moved_to(leader.fetch(3, 4)) == 4
    assert moved_to(leader.fetch(3, 10)) == 7


def test_it_never_falls_within_an_epoch() -> None:  # P2
    leader = Leader()
    leader.append(5)
    leader.fetch(2, 5)
    leader.fetch(3, 5)
    assert leader.fetch(2, 1) == []
    assert leader.high_watermark == 5


def test_a_sole_member_commits_what_it_appends() -> None:
    leader = Leader()
    leader.apply(isr=(1,), partition_epoch=11)
    assert moved_to(leader.append(3)) == 3


def test_below_min_insync_nothing_is_committed() -> None:  # P9
    leader = Leader(min_insync=2)
    assert BelowMinIsr(1, 2) in leader.apply(isr=(1,), partition_epoch=11)
    assert leader.append(3) == []
    change = proposal(leader.fetch(2, 3))
    assert leader.high_watermark == 0  # asked for is not committed
    assert moved_to(leader.confirm(change)) == 3


def test_min_insync_is_never_more_than_there_are_replicas() -> None:
    leader = Leader(min_insync=9)
    assert leader.state.needed_isr == 3


def test_our_own_copy_counts_only_when_it_is_flushed_where_that_is_asked_for() -> None:
    leader = Leader(flush_before_ack=True)
    leader.append(4)
    leader.fetch(2, 4)
    assert leader.fetch(3, 4) == []
    assert moved_to(leader.state.flushed(2, 0)) == 2
    assert moved_to(leader.state.flushed(9, 0)) == 4


def test_a_policy_takes_effect_at_once() -> None:
    leader = Leader(min_insync=3)
    leader.apply(isr=(1, 2), partition_epoch=11)
    leader.append()
    leader.fetch(2, 1)
    effects = leader.state.set_policy(min_insync=2, flush_before_ack=False, now_ms=0)
    assert moved_to(effects) == 1


def test_a_follower_keeps_the_high_watermark_that_it_was_told() -> None:
    follower = Leader(replace(FIRST, leader=2), offset=10, high_watermark=8).state
    assert follower.heard_leader(9) == [MoveHighWatermark(9)]
    assert follower.heard_leader(5) == []  # a new leader does not know better yet
    assert moved_to(follower.heard_leader(99)) == 10
    follower.truncated(6)
    assert follower.high_watermark == 6


# -- becoming


def test_roles_follow_the_metadata() -> None:
    leader = Leader()
    assert leader.effects == [StartLeading(5, 0)]
    assert leader.apply(isr=(2, 3), partition_epoch=11, leader_epoch=6, leader=2) == [
        StopLeading(),
        StartFollowing(2, 6),
    ]
    assert leader.apply(isr=(2,), partition_epoch=12, leader_epoch=6, leader=2) == []
    assert leader.apply(isr=(2,), partition_epoch=13, leader_epoch=7, leader=NO_LEADER) == [
        StopFollowing()
    ]
    assert leader.apply(isr=(1,), partition_epoch=14, leader_epoch=8) == [
        StopFollowing(),
        StartLeading(8, 0),
    ]


def test_older_metadata_is_ignored() -> None:
    leader = Leader()
    leader.apply(isr=(1, 2), partition_epoch=12)
    assert leader.apply(isr=(1, 2, 3), partition_epoch=11) == []
    assert leader.apply(isr=(2,), partition_epoch=13, leader_epoch=4, leader=2) == []
    assert leader.role.isr == CommittedIsr(frozenset({1, 2}))
    assert (leader.state.leader_epoch, leader.state.partition_epoch) == (5, 12)


def test_what_is_known_of_followers_ends_with_the_epoch() -> None:
    """Another may have led in between, and cut their logs."""
    leader = Leader()
    leader.append(5)
    leader.fetch(2, 5)
    leader.fetch(3, 3)
    leader.apply(isr=(1, 2, 3), partition_epoch=12, leader_epoch=7)
    leader.append()
    assert leader.fetch(3, 6) == []
    assert moved_to(leader.fetch(2, 4)) == 4


def test_a_leader_never_cuts_its_log() -> None:
    leader = Leader()
    with pytest.raises(InvariantViolation):
        leader.state.truncated(0)
    with pytest.raises(InvariantViolation):
        leader.state.restarted(7)


# -- shrinking and expanding


def test_a_follower_that_lags_is_dropped_and_counts_until_the_controller_agrees() -> None:
    leader = Leader()
    leader.append(4)
    leader.fetch(2, 4)
    change = proposal(leader.check_after(LAG_MS + 1))
    assert change.ids == {1, 2}
    assert leader.high_watermark == 0
    assert moved_to(leader.confirm(change)) == 4


def test_a_follower_always_a_little_behind_stays() -> None:
    leader = Leader()
    for offset in range(20):
        leader.append()
        leader.fetch(2, offset)
        leader.fetch(3, offset + 1)
        assert proposed(leader.check_after(LAG_MS // 2)) is None


def test_an_idle_follower_is_judged_by_its_session() -> None:
    """It was caught up as of its last fetch, whatever that fetch was about."""
    leader, clock = Leader(), SessionClock()
    leader.fetch(2, 0, clock=clock)
    leader.fetch(3, 0, clock=SessionClock())
    leader.now_ms = 50 * LAG_MS
    clock.heard(leader.now_ms - 10)
    leader.append()
    assert proposal(leader.check_after(1)).ids == {1, 2}


def test_joining_takes_the_high_watermark_and_the_start_of_the_epoch() -> None:  # P5
    behind = replace(FIRST, isr=(1, 2))
    leader = Leader(behind, offset=10, high_watermark=4)
    assert proposed(leader.fetch(3, 9)) is None  # committed before we led, perhaps
    assert proposal(leader.fetch(3, 10)).ids == {1, 2, 3}


def test_a_joining_replica_counts_before_it_is_certain() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    change = proposal(leader.fetch(3, 0))
    leader.append(3)
    assert moved_to(leader.fetch(2, 3)) is None
    leader.now_ms += 10 * LAG_MS  # not even if it falls behind meanwhile
    assert moved_to(leader.state.check(leader.now_ms)) is None
    assert moved_to(leader.refuse(change, ErrorCode.INELIGIBLE_REPLICA)) == 3


def test_a_caught_up_replica_is_waited_for_until_it_lags() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    leader.refuse(proposal(leader.fetch(3, 0)), ErrorCode.INELIGIBLE_REPLICA)
    leader.append(2)
    assert moved_to(leader.fetch(2, 2)) is None
    assert moved_to(leader.check_after(LAG_MS + 1)) == 2


def test_a_replica_that_was_started_anew_is_not_waited_for() -> None:
    leader = Leader()
    leader.fetch(2, 0)
    leader.fetch(3, 0)
    leader.apply(isr=(1, 2), partition_epoch=11)
    leader.brokers.change(3, epoch=203)
    leader.append()
    assert moved_to(leader.fetch(2, 1)) == 1


def test_one_proposal_at_a_time() -> None:
    leader = Leader(replace(FIRST, isr=(1,)))
    first = proposal(leader.fetch(2, 0))
    assert proposed(leader.fetch(3, 0)) is None
    again = proposal(leader.confirm(first) + leader.fetch(3, 0))
    assert again.ids == {1, 2, 3}
    assert (again.leader_epoch, again.partition_epoch) == (5, 11)


def test_those_who_wait_idly_are_asked_in_when_they_may_join() -> None:
    """They do not mention an idle partition again."""
    leader, clock = Leader(replace(FIRST, isr=(1, 2))), SessionClock()
    leader.brokers.change(3, fenced=True)
    clock.heard(0)
    assert proposed(leader.fetch(3, 0, clock=clock)) is None
    leader.brokers.change(3)
    assert proposal(leader.state.brokers_changed(5)).ids == {1, 2, 3}


@pytest.mark.parametrize("trouble", ["fenced", "stops", "gone"])
def test_a_follower_that_may_not_count_leaves_at_once(trouble: str) -> None:
    leader = Leader()
    leader.fetch(3, 0)
    if trouble == "gone":
        del leader.brokers.known[3]
    else:
        leader.brokers.change(3, fenced=trouble == "fenced", stops=trouble == "stops")
    assert proposal(leader.state.brokers_changed(0)).ids == {1, 2}


# -- answers


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_an_answer_that_says_we_are_behind_leaves_the_proposal_pending(code: ErrorCode) -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    change = proposal(leader.fetch(3, 0))
    assert leader.refuse(change, code) == []
    assert leader.state.is_pending(change)


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_other_errors_are_tried_again(code: ErrorCode) -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    change = proposal(leader.fetch(3, 0))
    assert proposed(leader.refuse(change, code)) is change


def test_a_refusal_of_a_member_takes_the_proposal_back_for_a_while() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    change = proposal(leader.fetch(3, 0))
    leader.refuse(change, ErrorCode.INELIGIBLE_REPLICA)
    assert proposed(leader.fetch(3, 0)) is None
    leader.now_ms += INELIGIBLE_PAUSE_MS
    assert proposal(leader.fetch(3, 0)).ids == {1, 2, 3}


def test_an_answer_that_lost_its_race_is_ignored() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    change = proposal(leader.fetch(3, 0))
    leader.apply(isr=(1,), partition_epoch=11)
    assert leader.confirm(change) == []
    assert leader.role.isr.members == {1}


def test_an_answer_to_an_earlier_proposal_does_not_settle_the_present_one() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    first = proposal(leader.fetch(3, 0))
    leader.apply(isr=(1,), partition_epoch=11)
    second = proposal(leader.fetch(2, 0))
    assert leader.refuse(first, ErrorCode.INELIGIBLE_REPLICA) == []
    assert leader.state.is_pending(second)


def test_an_answer_of_another_epoch_says_nothing() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    change = proposal(leader.fetch(3, 0))
    later = IsrResult(PARTITION, 2, 6, 12, (2, 3))
    assert leader.state.altered(change, later, 0) == []
    assert leader.state.is_pending(change)


def test_the_same_partition_epoch_from_the_log_leaves_a_pending_change_alone() -> None:
    """The answer was quicker than the log, and the next change is on its way already."""
    leader = Leader(replace(FIRST, isr=(1,)))
    leader.confirm(proposal(leader.fetch(2, 0)))
    second = proposal(leader.fetch(3, 0))
    assert leader.apply(isr=(1, 2), partition_epoch=11) == []
    assert leader.state.is_pending(second)
    leader.append()
    leader.now_ms += 10 * LAG_MS
    assert moved_to(leader.fetch(2, 1)) is None  # 3 may be in the ISR by now


def test_a_change_that_was_none_still_ends_the_wait() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    change = proposal(leader.fetch(3, 0))
    same = IsrResult(PARTITION, 1, 5, 10, (1, 2))
    leader.state.altered(change, same, 0)
    assert leader.role.isr == CommittedIsr(frozenset({1, 2}))


# -- whose fetch counts


def test_a_fetch_of_no_replica_and_one_of_an_earlier_run_are_refused() -> None:
    leader = Leader()
    with pytest.raises(Refused) as unknown:
        leader.fetch(4, 0)
    assert unknown.value.error.code == ErrorCode.UNKNOWN_LEADER_EPOCH
    before = leader.role.followers[2]
    with pytest.raises(Refused) as stale:
        leader.fetch(2, 0, epoch=99)
    assert stale.value.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.role.followers[2] is before


def test_a_run_that_metadata_does_not_know_yet_counts_but_may_not_join() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    assert proposed(leader.fetch(3, 0, epoch=999)) is None
    assert leader.role.followers[3].end_offset == 0
    with pytest.raises(Refused):
        leader.fetch(3, 0)  # and the run before it is over


# -- serving without the controller


def test_a_leader_is_sure_while_all_others_in_sync_answer_it() -> None:
    leader, clocks = Leader(), {2: SessionClock(), 3: SessionClock()}
    for replica, clock in clocks.items():
        leader.fetch(replica, 0, clock=clock)
        clock.replied(1_000)
        clock.heard(1_001)
    assert leader.state.is_sure_to_lead(1_500, 500)
    assert not leader.state.is_sure_to_lead(1_501, 500)
    clocks[2].replied(2_000)
    clocks[2].heard(2_001)
    assert not leader.state.is_sure_to_lead(2_001, 500)


def test_a_sole_member_is_sure_only_where_one_is_enough() -> None:
    alone = replace(FIRST, isr=(1,))
    assert Leader(alone).state.is_sure_to_lead(0, 500)
    assert not Leader(alone, min_insync=2).state.is_sure_to_lead(0, 500)


def test_the_low_watermark_is_that_of_the_replicas_that_live() -> None:
    leader = Leader(offset=9, high_watermark=9)
    leader.state.start_moved(5)
    for replica, start in ((2, 3), (3, 1)):
        leader.state.fetched(FollowerFetch(replica, 100 + replica, 9, start), 0)
    assert leader.state.low_watermark() == 1
    leader.brokers.change(3, fenced=True)
    assert leader.state.low_watermark() == 3


def test_only_leaders_whose_replicas_lack_something_need_looking_after() -> None:
    leader = Leader()
    assert not leader.state.is_settled()
    leader.fetch(2, 0)
    leader.fetch(3, 0)
    assert leader.state.is_settled()
    leader.append()
    assert not leader.state.is_settled()
