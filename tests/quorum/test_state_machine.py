from collections.abc import Iterator
from dataclasses import replace

import pytest

from kraftlog._check import InvariantViolation
from kraftlog.clock import ManualClock
from kraftlog.errors import CorruptRecord
from quorum.batches import encode_records
from quorum.core.messages import Batch, LeaderChange, NoOp, SnapshotId
from quorum.snapshot_file import Snapshot
from quorum.state_machine import READ_BYTES, Applier
from quorum.store import Store, format_store, log_directory
from storage.model_disk import ModelDisk
from tests.quorum.machines import Recorder
from tests.quorum.samples import TIME_MS, key, voters

ME = 1


def new_store() -> tuple[ModelDisk, Store]:
    disk = ModelDisk()
    disk.make_dir("/n")
    disk.sync_dir("/")
    format_store(disk, "/n", ManualClock(), voters(ME))
    return disk, Store(disk, "/n", ManualClock())


def append(store: Store, *values: bytes, epoch: int = 1) -> None:
    data = encode_records(list(values), timestamp=TIME_MS)
    batch = Batch(store.log.end_offset, epoch, len(values), data)
    store.append([batch], fetched=False)


def append_control(store: Store, epoch: int) -> int:
    offset = store.log.end_offset
    change = LeaderChange(key(ME), (key(ME),), (key(ME),))
    store.append([Batch(offset, epoch, 1, control=change)], fetched=False)
    return offset


def apply_all(applier: Applier) -> None:
    while applier.has_work:
        applier.step()


def test_committed_records_come_once_and_in_order() -> None:  # Q10
    _, store = new_store()
    machine = Recorder()
    applier = Applier(store, machine, ME)
    append(store, b"a", b"b")
    append(store, b"c")
    append(store, b"not yet")
    applier.commit(3)
    apply_all(applier)
    applier.commit(3)
    apply_all(applier)
    assert machine.values == [b"a", b"b", b"c"]
    assert applier.applied_offset == 3
    applier.commit(4)
    apply_all(applier)
    assert machine.told == ["snapshot 0-0", "commit 0-2", "commit 2-3", "commit 3-4"]


def test_control_records_move_the_offset_and_are_not_told() -> None:
    _, store = new_store()
    machine = Recorder()
    applier = Applier(store, machine, ME)
    append_control(store, 1)
    append(store, b"a")
    store.append([Batch(2, 1, 1, control=NoOp())], fetched=False)
    applier.commit(3)
    apply_all(applier)
    assert machine.values == [b"a"]
    assert applier.applied_offset == 3


def test_leadership_is_told_after_all_that_was_committed_before() -> None:
    _, store = new_store()
    machine = Recorder()
    applier = Applier(store, machine, ME)
    append(store, b"of a predecessor")
    start = append_control(store, 2)
    applier.change_leader(2, ME)
    applier.gain_leadership(2, start)
    assert machine.told == ["snapshot 0-0"]
    applier.commit(start)
    apply_all(applier)
    assert "leader 1 in 2" not in machine.told  # our own epoch has no commit yet
    applier.commit(start + 1)
    apply_all(applier)
    assert machine.told[-2:] == ["commit 0-1", "leader 1 in 2"]


def test_other_leaders_are_told_at_once_and_end_our_own() -> None:
    _, store = new_store()
    machine = Recorder()
    applier = Applier(store, machine, ME)
    start = append_control(store, 2)
    applier.gain_leadership(2, start)
    applier.change_leader(3, None)
    applier.change_leader(3, 7)
    applier.commit(start + 1)
    apply_all(applier)
    assert machine.told == ["snapshot 0-0", "leader None in 3", "leader 7 in 3"]


def test_a_snapshot_takes_the_place_of_all_that_it_holds() -> None:
    _, store = new_store()
    machine = Recorder()
    applier = Applier(store, machine, ME)
    append(store, b"a", b"b")
    applier.commit(2)
    apply_all(applier)
    store.write_snapshot(applier.snapshot_id, voters(ME), machine.dump())
    store.add_snapshot(applier.snapshot_id)
    assert applier.bytes_since_snapshot > 0
    fresh = Recorder()
    again = Applier(store, fresh, ME)
    assert again.snapshot_id == SnapshotId(2, 1)
    assert again.bytes_since_snapshot == 0
    assert fresh.values == [b"a", b"b"]
    older = replace(store.open_snapshot(SnapshotId(2, 1)), id=SnapshotId(1, 1))
    with pytest.raises(InvariantViolation, match="state goes back"):
        applier.load(older)


class Slow(Recorder):
    """Loads a snapshot value by value."""

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        loaded = []
        for value in snapshot.values():
            loaded.append(value)
            yield
        self.values = loaded


def loading(*values: bytes) -> tuple[Applier, Slow]:
    """One that has applied a record, and is told to load a snapshot of three in its place."""
    _, store = new_store()
    machine = Slow()
    applier = Applier(store, machine, ME)
    append(store, b"old")
    applier.commit(1)
    apply_all(applier)
    store.write_snapshot(SnapshotId(3, 1), voters(ME), list(values))
    applier.load(store.open_snapshot(SnapshotId(3, 1)))
    return applier, machine


def test_a_snapshot_is_loaded_step_by_step_and_counts_at_its_end() -> None:
    applier, machine = loading(b"a", b"b", b"c")
    applier.commit(3)
    for _ in range(3):
        applier.step()
        assert applier.has_work
        assert (applier.applied_offset, machine.values) == (1, [b"old"])
    applier.step()
    assert (applier.applied_offset, machine.values) == (3, [b"a", b"b", b"c"])
    assert not applier.has_work


def test_who_comes_to_lead_while_loading_hears_of_it_at_the_end() -> None:
    applier, machine = loading(b"a")
    applier.gain_leadership(2, 2)
    assert machine.told[-1] == "commit 0-1"
    apply_all(applier)
    assert machine.told[-1] == f"leader {ME} in 2"


def test_a_newer_snapshot_takes_the_place_of_one_that_is_being_loaded() -> None:
    applier, machine = loading(b"a", b"b", b"c")
    applier.step()
    store = applier._store
    store.write_snapshot(SnapshotId(5, 1), voters(ME), [b"new"])
    applier.load(store.open_snapshot(SnapshotId(5, 1)))
    apply_all(applier)
    assert (applier.applied_offset, machine.values) == (5, [b"new"])


def test_work_is_cut_into_slices() -> None:
    _, store = new_store()
    machine = Recorder()
    applier = Applier(store, machine, ME)
    for _ in range(8):
        append(store, bytes(READ_BYTES // 2))
    applier.commit(8)
    steps = 0
    while applier.has_work:
        applier.step()
        steps += 1
    assert steps >= 4
    assert len(machine.values) == 8


def test_damage_found_while_applying_is_not_applied() -> None:
    disk, store = new_store()
    machine = Recorder()
    applier = Applier(store, machine, ME)
    append(store, b"a" * 50)
    path = f"{log_directory('/n')}/{0:020d}.log"
    file = disk.open(path)
    file.pwrite([b"Z"], file.size() - 3)
    store._recent.clear()  # else it would come from memory, where it is sound
    applier.commit(1)
    with pytest.raises(CorruptRecord):
        applier.step()
    assert machine.values == []
