from collections import deque

from kraftlog.clock import ManualClock
from quorum.core.messages import SnapshotId
from quorum.journal import Journal
from quorum.state_machine import CommittedBatch
from quorum.store import Store, format_store
from storage.model_disk import ModelDisk
from tests.quorum.samples import TIME_MS, voters


def batch(offset: int, *values: bytes) -> CommittedBatch:
    return CommittedBatch(offset, 1, TIME_MS, values)


def test_the_same_records_have_the_same_digest() -> None:
    one, other = Journal(), Journal()
    one.handle_commit([batch(0, b"a"), batch(1, b"b", b"c")])
    other.handle_commit([batch(0, b"a")])
    assert one.digest != other.digest
    other.handle_commit([batch(1, b"b", b"c")])
    assert (one.records, one.digest) == (other.records, other.digest)
    assert one.records == 3


def test_order_offsets_and_borders_count() -> None:
    stories = [
        [batch(0, b"a", b"b")],
        [batch(0, b"b", b"a")],
        [batch(1, b"a", b"b")],
        [batch(0, b"ab", b"")],
    ]
    digests = set()
    for story in stories:
        journal = Journal()
        journal.handle_commit(story)
        digests.add(journal.digest)
    assert len(digests) == len(stories)


def test_a_snapshot_brings_the_state_back() -> None:  # Q11
    disk = ModelDisk()
    disk.make_dir("/n")
    format_store(disk, "/n", ManualClock(), voters(1))
    store = Store(disk, "/n", ManualClock())
    journal = Journal()
    first = store.latest_snapshot()
    assert first is not None
    deque(journal.handle_snapshot(first))
    assert journal.records == 0
    journal.handle_commit([batch(0, b"a", b"b")])
    snapshot = SnapshotId(2, 1)
    store.write_snapshot(snapshot, voters(1), journal.dump())
    again = Journal()
    deque(again.handle_snapshot(store.open_snapshot(snapshot)))
    assert (again.records, again.digest) == (journal.records, journal.digest)
