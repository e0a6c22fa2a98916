import pytest

from kraftlog._check import InvariantViolation
from kraftlog.clock import ManualClock
from kraftlog.errors import LogDamaged
from quorum.batches import encode_records
from quorum.core.log_view import NOT_IN_LOG
from quorum.core.messages import Batch, LeaderChange, SnapshotId, VoterSet
from quorum.core.state import ElectionState
from quorum.snapshot_file import snapshot_name, write_snapshot
from quorum.store import Download, Store, format_store, log_directory
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk
from tests.quorum.samples import TIME_MS, key, voters

DIRECTORY = "/node"
LOG = log_directory(DIRECTORY)
CONFIG = LogConfig(segment_bytes=300, delete=False)


def new_disk(of: VoterSet | None = None) -> ModelDisk:
    disk = ModelDisk()
    disk.make_dir(DIRECTORY)
    disk.sync_dir("/")
    format_store(disk, DIRECTORY, ManualClock(), of)
    return disk


def open_store(disk: ModelDisk) -> Store:
    return Store(disk, DIRECTORY, ManualClock(), CONFIG)


def data(offset: int, epoch: int, count: int = 1) -> Batch:
    values = [b"v%d" % (offset + number) for number in range(count)]
    return Batch(offset, epoch, count, encode_records(values, timestamp=TIME_MS))


def test_a_formatted_replica_has_no_history_but_its_voters() -> None:
    store = open_store(new_disk(voters(1, 2, 3)))
    assert store.election == ElectionState()
    assert store.view.end_offset == 0
    assert store.view.latest_voters.voters == voters(1, 2, 3)
    assert store.view.latest_voters.offset == NOT_IN_LOG
    assert open_store(new_disk()).view.latest_voters.voters == VoterSet()


def test_what_was_flushed_is_there_after_a_power_cut() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    store.save_election(ElectionState(3, voted_key=key(1), leader_id=1))
    change = LeaderChange(key(1), (key(1),), (key(1),))
    store.append(
        [Batch(0, 3, 1, control=change), Batch(1, 3, 1, control=voters(1, 2))], fetched=False
    )
    store.append([data(2, 3, 4)], fetched=False)
    assert store.flush() == 6
    disk.restart(seed=1)
    again = open_store(disk)
    assert again.election == ElectionState(3, voted_key=key(1), leader_id=1)
    assert (again.view.end_offset, again.view.last_epoch) == (6, 3)
    assert again.view.latest_voters.voters == voters(1, 2)
    assert again.view.latest_voters.offset == 1


def test_a_truncation_is_durable_and_takes_voters_back() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    store.append([data(0, 1), data(1, 1)], fetched=False)
    store.append([Batch(2, 2, 1, control=voters(1, 2))], fetched=False)
    store.flush()
    store.truncate(1)
    store.append([data(1, 3)], fetched=False)
    store.flush()
    disk.restart(seed=2)
    again = open_store(disk)
    assert (again.view.end_offset, again.view.last_epoch) == (2, 3)
    assert again.view.latest_voters.voters == voters(1)


def test_fetched_batches_keep_their_bytes() -> None:
    one, other = open_store(new_disk(voters(1))), open_store(new_disk(voters(1)))
    one.append([data(0, 1, 3), data(3, 2, 2)], fetched=False)
    raw = one.read(0, end_offset=5, max_bytes=10_000)
    cut = len(one.read(0, end_offset=3, max_bytes=10_000))
    other.append([Batch(0, 1, 3, raw[:cut]), Batch(3, 2, 2, raw[cut:])], fetched=True)
    assert other.read(0, end_offset=5, max_bytes=10_000) == raw


def fill(store: Store, end: int) -> None:
    for offset in range(store.view.end_offset, end):
        store.append([data(offset, 1)], fetched=False)
    store.flush()


def test_the_log_goes_behind_a_snapshot() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    fill(store, 20)
    old, new = SnapshotId(5, 1), SnapshotId(15, 1)
    for snapshot in (old, new):
        store.write_snapshot(snapshot, voters(1), [b"state"])
        store.add_snapshot(snapshot)
    before = store.size_bytes
    store.drop_below(new)
    assert store.log.start_offset == 15
    assert store.size_bytes < before
    assert store.latest_snapshot() is not None
    assert not disk.exists(f"{LOG}/{snapshot_name(old)}")
    again = open_store(disk)
    assert (again.view.start_offset, again.view.end_offset) == (15, 20)
    assert again.view.snapshots == [new]
    assert again.snapshot_timestamp(new) > 0


def test_a_log_without_the_snapshot_that_it_needs_is_refused() -> None:  # Q15
    disk = new_disk(voters(1))
    store = open_store(disk)
    fill(store, 20)
    store.write_snapshot(SnapshotId(15, 1), voters(1), [b"state"])
    store.add_snapshot(SnapshotId(15, 1))
    store.drop_below(SnapshotId(15, 1))
    store.close()
    disk.remove(f"{LOG}/{snapshot_name(SnapshotId(15, 1))}")
    with pytest.raises(LogDamaged, match="no snapshot holds what is before"):
        open_store(disk)


def download(store: Store, snapshot: SnapshotId, content: bytes) -> Download:
    """As far as the thread that checks it."""
    store.start_download(snapshot)
    for position in range(0, len(content), 100):
        store.append_chunk(snapshot, position, content[position : position + 100])
    return store.begin_check(snapshot)


def snapshot_bytes(snapshot: SnapshotId) -> bytes:
    disk = ModelDisk()
    write_snapshot(disk, "/", snapshot, voters(1, 2), [b"theirs"] * 9, timestamp=TIME_MS)
    return disk.read_bytes(f"/{snapshot_name(snapshot)}")


def test_a_download_takes_the_place_of_the_log() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    fill(store, 7)
    snapshot = SnapshotId(100, 4)
    part = download(store, snapshot, snapshot_bytes(snapshot))
    store.check_download(part)
    assert store.end_check(part)
    loaded = store.finish_download(snapshot)
    assert (loaded.voters, list(loaded.values())) == (voters(1, 2), [b"theirs"] * 9)
    assert store.log.start_offset == store.log.end_offset == 100
    disk.restart(seed=3)
    again = open_store(disk)
    assert (again.view.start_offset, again.view.end_offset, again.view.last_epoch) == (100, 100, 4)
    assert again.view.latest_voters.voters == voters(1, 2)


def test_a_download_that_makes_no_sense_changes_nothing() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    fill(store, 7)
    snapshot = SnapshotId(100, 4)
    part = download(store, snapshot, snapshot_bytes(snapshot)[:-1])
    store.check_download(part)
    assert store.end_check(part)
    assert part.checked is None
    store.drop_download()
    assert store.log.end_offset == 7
    assert not parts(disk)
    with pytest.raises(InvariantViolation, match="no such download"):
        store.finish_download(snapshot)


def test_a_download_that_is_given_up_stays_until_its_check_is_done() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    snapshot = SnapshotId(100, 4)
    first = download(store, snapshot, snapshot_bytes(snapshot))
    store.drop_download()
    second = download(store, snapshot, snapshot_bytes(snapshot))
    assert len(parts(disk)) == 2
    store.check_download(first)
    assert first.checked is not None
    assert not store.end_check(first)
    assert len(parts(disk)) == 1
    with pytest.raises(InvariantViolation, match="not checked"):
        store.finish_download(snapshot)
    store.check_download(second)
    assert store.end_check(second)


def test_what_was_checked_is_durable() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    snapshot = SnapshotId(100, 4)
    part = download(store, snapshot, snapshot_bytes(snapshot))
    store.check_download(part)
    disk.sync_dir(LOG)
    disk.restart(seed=5)
    assert disk.read_bytes(part.file.path) == snapshot_bytes(snapshot)


def parts(disk: ModelDisk) -> list[str]:
    return [name for name in disk.list_dir(LOG) if name.endswith(".part")]


def test_power_lost_between_a_download_and_the_cut_is_made_good() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    fill(store, 7)
    snapshot = SnapshotId(100, 4)
    write_snapshot(disk, LOG, snapshot, voters(1, 2), [], timestamp=TIME_MS)
    disk.restart(seed=4)
    again = open_store(disk)
    assert (again.view.start_offset, again.view.end_offset) == (100, 100)


def test_half_downloads_are_forgotten_at_the_start() -> None:
    disk = new_disk(voters(1))
    store = open_store(disk)
    store.start_download(SnapshotId(9, 1))
    store.append_chunk(SnapshotId(9, 1), 0, b"half")
    assert parts(disk)
    open_store(disk)
    assert not parts(disk)


def test_chunks_of_a_snapshot() -> None:
    store = open_store(new_disk(voters(1)))
    fill(store, 9)
    snapshot = SnapshotId(9, 1)
    store.write_snapshot(snapshot, voters(1), [b"x" * 1_000])
    size, first = store.read_chunk(snapshot, 0, 600)
    _, rest = store.read_chunk(snapshot, 600, 10_000)
    assert size == len(first) + len(rest)
    assert store.read_chunk(snapshot, size, 10) == (size, b"")


def test_a_hole_in_the_log_is_refused() -> None:  # Q15
    disk = new_disk(voters(1))
    store = open_store(disk)
    fill(store, 30)
    store.close()
    segments = [name for name in disk.list_dir(LOG) if name.endswith(".log")]
    assert len(segments) > 3
    disk.remove(f"{LOG}/{segments[2]}")
    with pytest.raises(LogDamaged):
        open_store(disk)
