"""What all logs have in common."""

import pytest

from chaos.sim.ledger import Entry, Ledger, Mirror
from kraftlog._check import InvariantViolation
from kraftlog.record_batch import RecordBatch, encode_values
from kraftlog.types import Uuid
from quorum.batches import encode_control
from quorum.core.messages import ReplicaKey, SnapshotId, Voter, VoterSet
from tests.chaos.sim.clusters import append, elect, start

FIRST = VoterSet.of([Voter(ReplicaKey(1, Uuid(bytes(16))), "n1:1")])
SECOND = VoterSet.of([*FIRST.voters, Voter(ReplicaKey(2, Uuid(bytes(16))), "n2:1")])


def data(offset: int, *values: bytes, epoch: int = 1) -> RecordBatch:
    raw = encode_values(list(values), timestamp=0, base_offset=offset, leader_epoch=epoch)
    return RecordBatch(raw)


def voters(offset: int, members: VoterSet) -> RecordBatch:
    return RecordBatch(encode_control(members, offset=offset, epoch=1, timestamp=0))


def committed(*batches: RecordBatch) -> Ledger:
    ledger = Ledger(FIRST)
    before: Entry | None = None
    for batch in batches:
        before = ledger.note(batch, before)
        ledger.commit([before], "n1")
    return ledger


def test_one_offset_and_epoch_is_one_batch_with_one_past() -> None:  # Q4
    ledger = Ledger(FIRST)
    first = ledger.note(data(0, b"a"), None)
    ledger.note(data(1, b"b"), first)
    ledger.note(data(1, b"b"), None)  # the log of another node may begin there
    ledger.note(data(1, b"c", epoch=2), first)
    with pytest.raises(InvariantViolation, match="Q4 two batches"):
        ledger.note(data(1, b"x"), first)
    with pytest.raises(InvariantViolation, match="Q4 same batch, other past"):
        ledger.note(data(1, b"b"), ledger.note(data(0, b"z", epoch=0), None))


def test_what_is_committed_stays() -> None:  # Q6
    ledger = committed(data(0, b"a"), data(1, b"b", b"c"))
    assert (ledger.end, ledger.offset_of[b"c"]) == (3, 2)
    other = ledger.note(data(1, b"other", epoch=2), None)
    assert not ledger.is_committed(other)
    with pytest.raises(InvariantViolation, match="Q6 a committed record changed"):
        ledger.commit([other], "n2")
    with pytest.raises(InvariantViolation, match="Q6 a committed record changed"):
        ledger.commit([ledger.note(data(9, b"far"), None)], "n2")
    assert [entry.base_offset for entry in ledger.committed_from(1)] == [1]


def test_what_an_earlier_leader_wrote_may_be_committed_by_a_later_one() -> None:  # Q5
    ledger = committed(data(0, b"a"))
    last = ledger.committed[-1]
    old = ledger.note(data(1, b"b"), last)
    own = ledger.note(data(2, b"c", epoch=3), old)
    ledger.commit([old, own], "n3")
    assert ledger.committed_before(1) == []
    for late in (2, 3):  # elected in 2 without `old`, and told of it only now
        assert ledger.committed_before(late) == [last]
    assert ledger.committed_before(4) == [last, old, own]
    assert ledger.is_committed(old, epoch=3)
    assert not ledger.is_committed(old, epoch=2), "who follows the leader of 2 may cut it"


def test_a_value_is_committed_once() -> None:  # M3
    with pytest.raises(InvariantViolation, match="M3 committed twice"):
        committed(data(0, b"a"), data(1, b"a"))


def test_a_snapshot_is_compared_with_the_replay() -> None:  # Q11
    ledger = committed(data(0, b"a"), voters(1, SECOND), data(2, b"b", b"c"))
    digest = ledger.digest_at(4)
    assert isinstance(digest, int)
    ledger.check_snapshot(SnapshotId(4, 1), digest, SECOND)
    for snapshot, wrong, members in [
        (SnapshotId(4, 1), digest + 1, SECOND),
        (SnapshotId(4, 2), digest, SECOND),
        (SnapshotId(3, 1), digest, SECOND),
        (SnapshotId(4, 1), digest, FIRST),
    ]:
        with pytest.raises(InvariantViolation, match="Q11"):
            ledger.check_snapshot(snapshot, wrong, members)


def test_the_voters_are_those_of_the_log() -> None:
    ledger = committed(data(0, b"a"), voters(1, SECOND))
    assert ledger.voters_at(1) is None
    assert ledger.voters_at(2) == SECOND
    assert [ledger.holds_voters(entry) for entry in ledger.committed] == [False, True]


def test_a_mirror_follows_a_log() -> None:
    cluster = start(1)
    leader = elect(cluster)
    assert leader.store is not None
    mirror = Mirror(cluster.checker.ledger)
    mirror.extend(leader.store)
    offset = append(cluster, leader, b"v")
    mirror.extend(leader.store)
    last = mirror.between(offset, mirror.end)[0]
    assert last.base_offset == offset
    leader.store.log.truncate_to(offset)
    assert mirror.reload(leader.store) == [last]
    assert not mirror.holds(last)
    with pytest.raises(InvariantViolation, match="Q6 a hole in the log"):
        mirror.between(offset, offset + 1)


def test_below_its_start_a_mirror_relies_on_the_snapshot() -> None:
    cluster = start(1)
    leader = elect(cluster)
    assert leader.store is not None
    mirror = Mirror(cluster.checker.ledger)
    mirror.extend(leader.store)
    first = mirror.between(0, 1)[0]
    mirror.drop_below(1)
    assert mirror.holds(first)
    assert not mirror.holds(first._replace(next_offset=2))
