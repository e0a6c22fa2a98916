"""The model disk forgets what it may, keeps what it must, and fails as it is told."""

import errno
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.errors import LogDirLocked, NotYetSupported
from storage.files import File
from storage.model_disk import ModelDisk, Operation, PowerCut, ProcessEnded
from tests.storage.disks import tree, write

SEEDS = range(200)


@pytest.fixture
def disk() -> ModelDisk:
    disk = ModelDisk()
    disk.make_dir("d")
    disk.sync_all()
    return disk


def fates(disk: ModelDisk) -> list[dict[str, bytes | None]]:
    """What power cuts with many seeds leave of the directory d, each fate once."""
    found: list[dict[str, bytes | None]] = []
    for seed in SEEDS:
        left = tree(disk.fork().restart(seed), "d")
        if left not in found:
            found.append(left)
    return found


# -- a power cut


def test_what_was_synced_survives_every_power_cut(disk: ModelDisk) -> None:
    write(disk, "d/f", b"abc").sync()
    disk.sync_dir("d")
    assert fates(disk) == [{"d/f": b"abc"}]


def test_bytes_that_were_not_synced_may_be_lost_torn_or_zeros(disk: ModelDisk) -> None:
    file = write(disk, "d/f", b"ab")
    file.sync()
    disk.sync_dir("d")
    file.pwrite([b"cd"], 2)
    left = {fate["d/f"] for fate in fates(disk)}
    assert left == {b"ab", b"abc", b"abcd", b"ab\0", b"ab\0\0", b"abc\0"}


def test_a_disk_can_be_kinder(disk: ModelDisk) -> None:
    kind = ModelDisk(reorder=False, extend=False)
    kind.make_dir("d")
    write(kind, "d/f", b"")
    kind.sync_all()
    kind.open("d/f").pwrite([b"ab"], 0)
    assert {fate["d/f"] for fate in fates(kind)} == {b"", b"a", b"ab"}


def test_a_name_is_durable_only_after_its_directory_was_synced(disk: ModelDisk) -> None:
    write(disk, "d/f", b"abc").sync()
    left = fates(disk)
    assert {} in left
    assert {"d/f": b"abc"} in left
    assert len(left) == 2


def test_syncing_a_directory_does_not_sync_its_files(disk: ModelDisk) -> None:
    write(disk, "d/f", b"a")
    disk.sync_dir("d")
    assert {fate["d/f"] for fate in fates(disk)} == {b"", b"a", b"\0"}


def test_syncing_a_directory_does_not_sync_the_one_above(disk: ModelDisk) -> None:
    disk.make_dir("d/e")
    write(disk, "d/e/f", b"abc").sync()
    disk.sync_dir("d/e")
    assert sorted(map(len, fates(disk))) == [0, 2]


def test_a_rename_happened_or_it_did_not(disk: ModelDisk) -> None:
    file = write(disk, "d/f", b"abc")
    disk.sync_all()
    file.rename("d/g")
    assert file.path == "d/g"
    left = fates(disk)
    assert len(left) == 2
    assert {"d/f": b"abc"} in left
    assert {"d/g": b"abc"} in left
    disk.sync_dir("d")
    assert fates(disk) == [{"d/g": b"abc"}]


def test_a_removed_file_may_come_back_until_the_directory_is_synced(disk: ModelDisk) -> None:
    write(disk, "d/f", b"abc")
    disk.sync_all()
    disk.remove("d/f")
    left = fates(disk)
    assert len(left) == 2
    assert {} in left
    assert {"d/f": b"abc"} in left
    disk.sync_dir("d")
    assert fates(disk) == [{}]


def test_a_removed_directory_may_come_back_too(disk: ModelDisk) -> None:
    disk.make_dir("d/e")
    disk.sync_all()
    disk.remove_dir("d/e")
    assert sorted(map(len, fates(disk))) == [0, 1]
    disk.sync_dir("d")
    assert fates(disk) == [{}]


def test_a_durable_atomic_write_is_all_or_nothing_after_each_of_its_steps(disk: ModelDisk) -> None:
    disk.write_atomic("d/f", b"old")
    for step in range(7):
        cut = disk.fork()
        cut.crash_after = cut.op_count + step
        try:
            cut.write_atomic("d/f", b"new!")
        except PowerCut:
            assert step < 6
        allowed: set[bytes | None] = {b"old", b"new!"} if step < 6 else {b"new!"}
        assert {fate["d/f"] for fate in fates(cut)} <= allowed


def test_an_atomic_write_that_is_not_durable_may_leave_anything(disk: ModelDisk) -> None:
    disk.write_atomic("d/f", b"old")
    disk.write_atomic("d/f", b"new!", durable=False)
    assert {b"old", b"new!", b"", b"ne"} <= {fate["d/f"] for fate in fates(disk)}


def test_the_power_fails_during_the_change_after_the_given_number(disk: ModelDisk) -> None:
    disk.restart()
    disk.crash_after = 2
    file = write(disk, "d/f", b"abc")
    assert disk.op_count == 2
    with pytest.raises(PowerCut, match="operation 3"):
        file.sync()
    assert {fate.get("d/f") for fate in fates(disk)} > {None, b"abc", b""}


def everything(disk: ModelDisk, file: File) -> list[Callable[[], object]]:
    return [
        file.size,
        file.sync,
        lambda: file.pread(1, 0),
        lambda: file.pwrite([b"x"], 0),
        lambda: file.truncate(0),
        lambda: file.rename("d/g"),
        lambda: disk.open("d/f"),
        lambda: disk.exists("d/f"),
        lambda: disk.is_dir("d"),
        lambda: disk.size("d/f"),
        lambda: disk.list_dir("d"),
        lambda: disk.list_sizes("d"),
        lambda: disk.make_dir("d"),
        lambda: disk.remove("d/f"),
        lambda: disk.remove_dir("d"),
        lambda: disk.rename("d/f", "d/g"),
        lambda: disk.sync_dir("d"),
        lambda: disk.read_bytes("d/f"),
        lambda: disk.write_atomic("d/f", b""),
        lambda: disk.lock("d/l"),
    ]


def test_nothing_works_without_power_and_closing_does_no_harm(disk: ModelDisk) -> None:
    file = write(disk, "d/f", b"abc")
    disk.sync_all()
    disk.crash_after = 0
    with pytest.raises(PowerCut):
        file.truncate(0)
    for operation in everything(disk, file):
        with pytest.raises(PowerCut):
            operation()
    with pytest.raises(InvariantViolation, match="restart"):
        disk.kill_process()
    file.close()
    disk.restart(seed=1)
    assert disk.read_bytes("d/f") in (b"abc", b"")


def test_a_restart_begins_anew(disk: ModelDisk) -> None:
    file = write(disk, "d/f", b"abc")
    disk.sync_all()
    disk.fail_next("pwrite", errno.EIO)
    disk.crash_after = 4
    disk.restart()
    assert disk.op_count == 0
    with pytest.raises(OSError, match="file is closed"):
        file.size()
    file = disk.open("d/f")
    for _ in range(6):
        assert file.pwrite([b"x"], 0) == 1


# -- seeds

Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "truncate", "sync", "rename", "remove", "sync_dir"]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=25,
)


def do(disk: ModelDisk, step: Step) -> None:
    kind, first, second = step
    path, other = f"d/{first}", f"d/{second}"
    if kind == "write":
        write(disk, path, bytes([65 + second]) * 700, 400 * second).close()
    elif kind == "sync_dir":
        disk.sync_dir("d")
    elif not disk.exists(path):
        return
    elif kind == "truncate":
        disk.open(path).truncate(300 * second)
    elif kind == "sync":
        disk.open(path).sync()
    elif kind == "rename":
        disk.rename(path, other)
    else:
        disk.remove(path)


def run(disk: ModelDisk, steps: list[Step], crash_after: int) -> None:
    disk.make_dir("d")
    disk.sync_all()
    disk.crash_after = disk.op_count + crash_after
    try:
        for step in steps:
            do(disk, step)
    except PowerCut:
        assert disk.op_count == disk.crash_after + 1


@given(steps=steps, crash_after=st.integers(0, 30), seed=st.integers())
def test_the_same_seed_leaves_the_same_disk(steps: list[Step], crash_after: int, seed: int) -> None:
    first, second = ModelDisk(seed), ModelDisk(seed)
    run(first, steps, crash_after)
    run(second, steps, crash_after)
    assert tree(first.fork().restart(), "d") == tree(second.fork().restart(), "d")
    assert tree(first.restart(seed + 1), "d") == tree(second.restart(seed + 1), "d")


def test_other_seeds_leave_other_disks(disk: ModelDisk) -> None:
    write(disk, "d/f", b"a" * 5000)
    assert len(fates(disk)) > 20
    others = [ModelDisk(seed) for seed in SEEDS]
    for other in others:
        run(other, [("write", 0, 0)], crash_after=9)
    assert len({str(tree(other.restart(), "d")) for other in others}) > 20


def test_a_fork_goes_its_own_way(disk: ModelDisk) -> None:
    file = write(disk, "d/f", b"abc")
    fork = disk.fork()
    file.pwrite([b"x"], 0)
    fork.remove("d/f")
    assert disk.read_bytes("d/f") == b"xbc"
    assert not fork.exists("d/f")


def test_a_handle_follows_its_directory_and_its_bytes_are_synced_there(disk: ModelDisk) -> None:
    disk.make_dir("d/t-0")
    file = write(disk, "d/t-0/f", b"abc")
    disk.rename("d/t-0", "d/t-0.x-delete")
    assert file.path == "d/t-0.x-delete/f"
    file.sync()
    disk.sync_dir("d/t-0.x-delete")
    disk.sync_dir("d")
    assert fates(disk) == [{"d/t-0.x-delete": None, "d/t-0.x-delete/f": b"abc"}]


# -- a process that ends


def test_a_failed_sync_ends_the_process(disk: ModelDisk) -> None:
    file = write(disk, "d/f", b"abc")
    disk.fail_next("sync", errno.EIO)
    with pytest.raises(ProcessEnded, match="sync of d/f failed: Input/output error"):
        file.sync()
    for operation in everything(disk, file):
        with pytest.raises(ProcessEnded):
            operation()
    assert {} in fates(disk)
    disk.kill_process()
    assert disk.read_bytes("d/f") == b"abc"


def test_a_failed_sync_of_a_directory_does_too(disk: ModelDisk) -> None:
    write(disk, "d/f", b"abc").sync()
    disk.fail_next("sync_dir", errno.EIO, "d")
    with pytest.raises(ProcessEnded, match="sync_dir of d failed"):
        disk.sync_dir("d")
    assert {} in fates(disk)
    disk.restart()
    disk.sync_dir("d")


def test_the_end_of_a_process_loses_handles_and_locks_but_no_bytes(disk: ModelDisk) -> None:
    file = write(disk, "d/f", b"abc")
    lock = disk.lock("d/l")
    disk.kill_process()
    with pytest.raises(OSError, match="file is closed"):
        file.size()
    assert disk.read_bytes("d/f") == b"abc"
    with disk.lock("d/l"):
        lock.release()  # the dead process's lock is not this one
        with pytest.raises(LogDirLocked, match="d/l is locked"):
            disk.lock("d/l")
    disk.lock("d/l").release()


# -- faults


def failing_uses(disk: ModelDisk, file: File) -> list[tuple[Operation, Callable[[], object]]]:
    return [
        ("open", lambda: disk.open("d/f")),
        ("create", lambda: disk.open("d/new", create=True)),
        ("pread", lambda: file.pread(1, 0)),
        ("pread", lambda: disk.read_bytes("d/f")),
        ("truncate", lambda: file.truncate(0)),
        ("make_dir", lambda: disk.make_dir("d/new_dir")),
        ("remove_dir", lambda: disk.remove_dir("d/new_dir")),
        ("rename", lambda: file.rename("d/g")),
        ("remove", lambda: disk.remove("d/g")),
    ]


def test_a_planned_fault_changes_nothing_and_comes_once(disk: ModelDisk) -> None:
    for operation, use in failing_uses(disk, write(disk, "d/f", b"abc")):
        before, count = tree(disk, "d"), disk.op_count
        disk.fail_next(operation, errno.EIO)
        with pytest.raises(OSError, match="Input/output error") as caught:
            use()
        assert caught.value.errno == errno.EIO
        assert (tree(disk, "d"), disk.op_count) == (before, count)
        use()


def test_a_fault_waits_for_its_path_and_comes_as_often_as_planned(disk: ModelDisk) -> None:
    log, index = write(disk, "d/0.log", b""), write(disk, "d/0.index", b"")
    disk.fail_next("pwrite", errno.EIO, "*.index", times=2)
    assert log.pwrite([b"a"], 0) == 1
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error") as caught:
            index.pwrite([b"a"], 0)
        assert caught.value.filename == "d/0.index"
    assert index.pwrite([b"a"], 0) == 1


def test_a_failing_write_leaves_any_part_of_its_bytes() -> None:
    left = set()
    for seed in SEEDS:
        disk = ModelDisk(seed)
        file = write(disk, "f", b"xy")
        disk.fail_next("pwrite", errno.EIO)
        with pytest.raises(OSError, match="Input/output error"):
            file.pwrite([b"a", b"bc"], 1)
        left.add(disk.read_bytes("f"))
    assert left == {b"xy", b"xa", b"xab", b"xabc"}


def test_a_full_disk_takes_what_fits(disk: ModelDisk) -> None:
    disk.capacity_bytes = 5
    write(disk, "d/f", b"abc")
    file = write(disk, "d/g", b"")
    with pytest.raises(OSError, match="No space left") as caught:
        file.pwrite([b"12", b"34"], 0)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "d/g")
    assert disk.read_bytes("d/g") == b"12"
    assert file.pwrite([b"56"], 0) == 2  # overwriting needs no room
    disk.remove("d/f")
    assert file.pwrite([b"789"], 2) == 3


def test_a_flipped_bit_is_there_after_every_power_cut(disk: ModelDisk) -> None:
    write(disk, "d/f", b"abc").sync()
    disk.sync_dir("d")
    disk.flip_bit("d/f", 1, 0)
    assert disk.read_bytes("d/f") == b"acc"
    assert fates(disk) == [{"d/f": b"acc"}]
    for byte, bit in ((3, 0), (-1, 0), (0, 8)):
        with pytest.raises(InvariantViolation, match="no such"):
            disk.flip_bit("d/f", byte, bit)


def test_there_is_no_descriptor_to_pin(disk: ModelDisk) -> None:
    with pytest.raises(NotYetSupported, match="d/f is on a model disk"):
        write(disk, "d/f", b"").pinned_fd()
