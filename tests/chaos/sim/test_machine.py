"""The state machine that can be compared."""

from collections import deque

import pytest

from chaos.sim.machine import EMPTY_DIGEST, ListMachine, extend_digest
from kraftlog._check import InvariantViolation
from quorum.core.messages import SnapshotId, VoterSet
from quorum.snapshot_file import open_snapshot, snapshot_name, write_snapshot
from quorum.state_machine import CommittedBatch
from storage.model_disk import ModelDisk


def batch(offset: int, *values: bytes) -> CommittedBatch:
    return CommittedBatch(offset, 1, 0, values)


def test_the_digest_tells_lists_apart() -> None:
    machine = ListMachine()
    machine.handle_commit([batch(2, b"a", b"b"), batch(9, b"c")])
    assert machine.records == [(2, b"a"), (3, b"b"), (9, b"c")]
    assert machine.digest == extend_digest(EMPTY_DIGEST, machine.records)
    assert machine.digest != extend_digest(EMPTY_DIGEST, [(2, b"a"), (3, b"b"), (8, b"c")])


def test_a_snapshot_is_the_same_list() -> None:
    machine, copy = ListMachine(), ListMachine()
    machine.handle_commit([batch(2, b"a:b", b""), batch(9, b"c")])
    disk, name = ModelDisk(), SnapshotId(10, 1)
    write_snapshot(disk, "/", name, VoterSet(), machine.dump(), timestamp=0)
    copy.handle_commit([batch(0, b"something else")])
    deque(copy.handle_snapshot(open_snapshot(disk, f"/{snapshot_name(name)}", name)))
    assert (copy.records, copy.digest) == (machine.records, machine.digest)
    assert copy.snapshots_loaded == 1


def test_what_comes_twice_or_goes_back_is_noticed() -> None:  # Q10
    machine = ListMachine()
    machine.handle_commit([batch(2, b"a", b"b")])
    with pytest.raises(InvariantViolation, match="Q10 applied twice"):
        machine.handle_commit([batch(3, b"b")])
    machine.handle_leader_change(5, 1)
    with pytest.raises(InvariantViolation, match="Q10 epochs go back"):
        machine.handle_leader_change(4, None)
