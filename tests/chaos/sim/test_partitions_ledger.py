"""What all copies of a partition have in common."""

import pytest

from chaos.sim.partitions_ledger import Copy, Entry, PartitionLedger
from kraftlog._check import InvariantViolation
from kraftlog.record_batch import RecordBatch, encode_columns, patch_offsets

PRODUCER = 7


def batch(offset: int, epoch: int, value: bytes = b"v") -> RecordBatch:
    data = bytearray(encode_columns([value], timestamps=[1]))
    patch_offsets(data, base_offset=offset, leader_epoch=epoch)
    return RecordBatch(data)


def entry(offset: int, sequence: int) -> Entry:
    return Entry(offset, offset + 1, 0, offset, PRODUCER, sequence)


def test_an_epoch_has_one_batch_at_an_offset() -> None:
    ledger = PartitionLedger("t-0")
    ledger.note(batch(0, 1), None)
    ledger.note(batch(0, 2, b"of another leader"), None)
    with pytest.raises(InvariantViolation, match="P4 two batches"):
        ledger.note(batch(0, 1, b"other"), None)


def test_what_is_committed_stays() -> None:
    ledger = PartitionLedger("t-0")
    first = ledger.note(batch(0, 1), None)
    ledger.commit([first], "b1", 1)
    ledger.commit([first], "b2", 1)
    with pytest.raises(InvariantViolation, match="P3 a committed record changed"):
        ledger.commit([ledger.note(batch(0, 2, b"w"), None)], "b3", 2)


def test_a_leader_may_lack_what_a_later_one_has_committed() -> None:
    ledger = PartitionLedger("t-0")
    old = ledger.note(batch(0, 1), None)
    ledger.commit([old], "b1", 3)
    copy = Copy(ledger)
    for late in (2, 3):  # elected in 2 without it, and told of it only now
        assert copy.lacks(before_epoch=late) is None
    assert copy.lacks(before_epoch=4) == copy.lacks() == old


@pytest.mark.parametrize(("sequence", "rule"), [(0, "P8 a duplicate"), (2, "P8 a gap")])
def test_sequences_follow_each_other(sequence: int, rule: str) -> None:
    ledger = PartitionLedger("t-0")
    ledger.commit([entry(0, 0)], "b1", 1)
    with pytest.raises(InvariantViolation, match=rule):
        ledger.commit([entry(1, sequence)], "b1", 1)
