import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import ErrorCode
from quorum.core.messages import Batch, Refusal, ReplicaKey, SnapshotId, Voter, VoteReply, VoterSet
from tests.quorum.core.cluster import key_of, voter_of, voters_of

IDS = st.sets(st.integers(1, 9), max_size=6)


@given(IDS, st.integers(1, 9), st.integers(1, 2))
def test_a_voter_set_is_a_set_of_keys(ids: set[int], node_id: int, disk: int) -> None:
    voters, key = voters_of(*ids), key_of(node_id, disk)
    assert voters.keys == tuple(map(key_of, sorted(ids)))
    assert len(voters) == len(ids)
    is_in = node_id in ids and disk == 1
    assert (key in voters) == is_in
    assert voters.find_key(key) == (voter_of(node_id) if is_in else None)
    assert voters.find(node_id) == (voter_of(node_id) if node_id in ids else None)
    assert voters.without(key) == voters_of(*(ids - {node_id} if is_in else ids))
    assert voters.with_voter(voter_of(node_id, disk)).find(node_id) == voter_of(node_id, disk)


def test_voter_sets_are_compared_by_voters() -> None:
    assert voters_of(1, 2) == voters_of(2, 1)
    assert hash(voters_of(1, 2)) == hash(voters_of(2, 1))
    assert voters_of(1, 2) != voters_of(1, 2).with_voter(Voter(key_of(2), "elsewhere"))
    assert "_members" not in repr(voters_of(1))


def test_two_voters_with_one_node_id_make_no_sense() -> None:
    with pytest.raises(ValueError, match="own id"):
        VoterSet.of([voter_of(1), voter_of(1, disk=2)])
    with pytest.raises(ValueError, match="sorted"):
        VoterSet((voter_of(2), voter_of(1)))


def test_a_wiped_disk_is_another_replica() -> None:
    assert key_of(1) != key_of(1, disk=2)
    assert str(ReplicaKey(7, key_of(1).directory_id)).startswith("7:AAAA")


def test_a_batch_ends_where_the_next_begins() -> None:
    assert Batch(5, 1, 3).next_offset == 8


def test_snapshots_are_ordered_by_how_much_they_hold() -> None:
    assert SnapshotId(9, 2) < SnapshotId(10, 1)
    assert str(SnapshotId(10, 1)) == "10-1"


def test_a_vote_is_granted_unless_there_is_a_reason() -> None:
    assert VoteReply(epoch=1, leader=None).granted
    assert not VoteReply(epoch=1, leader=None, refusal=Refusal.LOG_BEHIND).granted


@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_says_why_in_words_of_its_own(refusal: Refusal) -> None:
    assert str(refusal) == refusal.text
    assert [each for each in Refusal if each.text == refusal.text] == [refusal]
    assert isinstance(refusal.code, ErrorCode)
