"""Opening a log after any stop: what was flushed is there, what is there is a prefix of what was
written.
"""

import errno
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import CorruptRecord, LogDamaged, OutOfOrderSequence, StorageError
from storage.files import Files, OsFiles
from storage.log import Log
from storage.model_disk import ModelDisk, PowerCut
from tests.storage.logs import batch, fill, opened, records_of, small_segments, values_of

DIRECTORY = "/data/t-0"


@pytest.fixture
def disk() -> ModelDisk:
    disk = ModelDisk(seed=1)
    disk.make_dir("/data")
    disk.sync_dir("/")
    return disk


def flip(disk: ModelDisk, name: str, byte: int, bit: int = 0) -> None:
    disk.flip_bit(f"{DIRECTORY}/{name}", byte, bit)


# -- a clean stop


def test_a_clean_stop_brings_everything_back(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 10, leader_epoch=3)
    log.append_from_client(batch(b"p", producer=(7, 0, 0)), leader_epoch=3)
    log.close()
    again = opened(disk, DIRECTORY, small_segments(), clean=True)
    assert (again.end_offset, again.flushed_offset, again.latest_epoch) == (11, 11, 3)
    assert len(values_of(again)) == 11
    assert again.append_from_client(batch(b"p", producer=(7, 0, 0)), leader_epoch=3).duplicate


@pytest.mark.parametrize("kind", [OsFiles, ModelDisk])
def test_a_log_may_lie_right_in_the_working_directory(
    kind: type[Files], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = kind()
    log = opened(files, "t-0")
    fill(log, 3)
    assert log.flush() == 3
    assert len(records_of(opened(files, "t-0"))) == 3


def test_a_clean_stop_that_lies_is_found_out(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    log.close()
    name = "00000000000000000000.log"
    file = disk.open(f"{DIRECTORY}/{name}")
    file.truncate(file.size() - 1)
    with pytest.raises(LogDamaged, match="was flushed"):
        opened(disk, DIRECTORY, clean=True)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kept", [0, 1])
def test_segments_that_went_away_as_a_whole_are_missed(
    disk: ModelDisk, clean: bool, kept: int
) -> None:
    """What is left looks sound by itself; only the recovery point knows of the rest."""
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 10)
    log.close()
    for name in [name for name in disk.list_dir(DIRECTORY) if name.endswith(".log")][kept:]:
        disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(LogDamaged, match=r"all below (offset )?10 was flushed"):
        opened(disk, DIRECTORY, small_segments(), clean=clean)


def test_a_directory_without_segments_is_made_durable_too(disk: ModelDisk) -> None:
    """Its maker was killed before it came to the first segment, or to any sync."""
    disk.make_dir(DIRECTORY)
    disk.kill_process()
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    assert log.flush() == 3
    for seed in range(20):
        assert len(values_of(opened(disk.fork().restart(seed), DIRECTORY))) == 3


# -- derived files


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("harm", ["remove", "empty", "flip"])
@pytest.mark.parametrize("clean", [True, False])
def test_derived_files_are_rebuilt_when_lost_or_wrong(  # R29
    disk: ModelDisk, suffix: str, harm: str, clean: bool
) -> None:
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 20, leader_epoch=5)
    log.append_from_client(batch(b"p", producer=(7, 0, 0)), leader_epoch=6)
    log.close()
    for name in disk.list_dir(DIRECTORY):
        path = f"{DIRECTORY}/{name}"
        if not name.endswith(suffix):
            continue
        if harm == "remove":
            disk.remove(path)
        elif harm == "empty":
            disk.open(path).truncate(0)
        elif disk.size(path):
            disk.flip_bit(path, disk.size(path) // 2, 1)
    again = opened(disk, DIRECTORY, small_segments(), clean=clean)
    assert [record.offset for record in records_of(again, max_bytes=1)] == list(range(21))
    found = again.offset_for_time(records_of(again)[15].timestamp)
    assert found is not None
    assert found.offset == 15
    if suffix != "leader-epoch-checkpoint" or harm != "flip":
        assert [e.epoch for e in again.epochs.entries()] == [5, 6]
    with pytest.raises(OutOfOrderSequence):
        again.append_from_client(batch(b"q", producer=(7, 0, 5)), leader_epoch=6)


# -- damage


@pytest.mark.parametrize("lost", ["leader-epoch-checkpoint", "00000000000000000000.index"])
def test_damage_met_while_derived_files_are_rebuilt_names_the_segment(
    disk: ModelDisk, lost: str
) -> None:
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 10)
    log.flush()
    flip(disk, "00000000000000000000.log", 10)  # its length
    disk.remove(f"{DIRECTORY}/{lost}")
    with pytest.raises(LogDamaged, match=r"t-0/00000000000000000000\.log is damaged"):
        opened(disk.kill_process(), DIRECTORY, small_segments())


def test_damage_below_the_recovery_point_refuses_and_says_where(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    position = log.read(0, 1).length + 70
    log.flush()
    flip(disk, "00000000000000000000.log", position)
    with pytest.raises(LogDamaged) as refusal:
        opened(disk, DIRECTORY)
    text = str(refusal.value)
    assert "offset 1 of /data/t-0" in text
    assert "00000000000000000000.log" in text
    assert "copy the log anew" in text


def test_damage_above_the_recovery_point_is_the_end_whatever_follows(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY)
    fill(log, 2)
    log.flush()
    one = log.read(0, 1).length
    fill(log, 3, first=2)
    flip(disk, "00000000000000000000.log", one * 3 + 70)
    again = opened(disk, DIRECTORY)
    assert again.end_offset == 3
    fill(again, 1, first=3)
    again.close()
    assert len(values_of(opened(disk, DIRECTORY, clean=True))) == 4


def test_an_unreadable_recovery_point_never_leads_to_a_cut(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    log.flush()
    flip(disk, "recovery-point", 10)
    assert opened(disk, DIRECTORY).end_offset == 3
    flip(disk, "recovery-point", 10)
    flip(disk, "00000000000000000000.log", 70)
    with pytest.raises(LogDamaged, match="recovery point is unreadable"):
        opened(disk, DIRECTORY)


def test_a_missing_segment_is_noticed(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 12)
    middle = log.segments[1]
    log.close()
    disk.remove(middle.log.path)
    with pytest.raises(LogDamaged, match="begins at"):
        opened(disk, DIRECTORY, small_segments())
    trusting = opened(disk, DIRECTORY, small_segments(), clean=True)
    with pytest.raises(LogDamaged, match="missing"):
        trusting.read(middle.base_offset, 100)


def test_a_flushed_tail_that_is_gone_is_damage(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    log.flush()
    disk.open(f"{DIRECTORY}/00000000000000000000.log").truncate(0)
    with pytest.raises(LogDamaged, match="all below 3 was flushed"):
        opened(disk, DIRECTORY)


def test_a_start_beyond_the_end_begins_anew_there(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    log.close()
    again = opened(disk, DIRECTORY, clean=True, start_offset=10)
    assert (again.start_offset, again.end_offset) == (10, 10)


@given(flips=st.tuples(st.floats(0, 0.999), st.floats(0, 0.999), st.integers(0, 7)))
def test_no_flipped_bit_gives_a_wrong_record(flips: tuple[float, float, int]) -> None:
    disk = ModelDisk(seed=1)
    log = opened(disk, "/t-0", small_segments())
    fill(log, 15, leader_epoch=2)
    log.flush()
    fill(log, 3, leader_epoch=3, first=15)
    expected = records_of(log)
    names = [name for name in disk.list_dir("/t-0") if disk.size(f"/t-0/{name}")]
    path = f"/t-0/{names[int(flips[0] * len(names))]}"
    disk.flip_bit(path, int(flips[1] * disk.size(path)), flips[2])
    try:
        found = records_of(opened(disk, "/t-0", small_segments(), verify_all=True))
    except (LogDamaged, CorruptRecord):
        assert path.endswith((".log", "recovery-point"))
        return
    assert found == expected[: len(found)]
    assert len(found) >= 15


# -- power cuts


@dataclass
class Expected:
    """What may be found after a power cut: a prefix of `values`, at least `flushed` of them."""

    values: list[bytes] = field(default_factory=list)
    flushed: int = 0
    start: int = 0

    def check(self, log: Log) -> None:
        assert log.start_offset <= self.start
        assert self.flushed <= log.end_offset <= len(self.values)
        assert values_of(log) == self.values[log.start_offset : log.end_offset]
        self.values = self.values[: log.end_offset]
        self.flushed = log.flushed_offset
        self.start = log.start_offset


Step = tuple[str, int]

STEPS = st.tuples(
    st.sampled_from(
        ["append", "append", "append", "flush", "roll", "truncate", "drop", "restart", "close"]
    ),
    st.integers(0, 100),
)


def perform(log: Log, disk: ModelDisk, expected: Expected, step: Step) -> Log:
    kind, number = step
    if kind == "append":
        values = [b"%d" % (len(expected.values) + n) + b"." * number for n in range(1 + number % 3)]
        expected.values += values
        log.append(batch(*values), leader_epoch=(log.latest_epoch or 0) + (number > 90))
    elif kind == "flush":
        expected.flushed = log.flush()
    elif kind == "roll":
        log.roll()
    elif kind == "truncate":
        target = log.start_offset + (log.end_offset - log.start_offset) * number // 100
        target = max(target, log.segments[0].base_offset if log.segments else 0)
        expected.flushed = 0  # a batch that spans the target goes as a whole
        end = log.truncate_to(target)
        expected.values = expected.values[:end]
        expected.flushed = log.flushed_offset
    elif kind == "drop" and len(log.segments) > 1:
        expected.start = max(log.start_offset, log.segments[1].base_offset)
        log.drop_oldest(1)
    elif kind == "close":
        log.close()
        expected.flushed = len(expected.values)
        return opened(disk, DIRECTORY, small_segments(), clean=True)
    elif kind == "restart":
        expected.flushed = min(expected.flushed, log.flushed_offset)
        log = opened(disk, DIRECTORY, small_segments())
        expected.check(log)
    return log


def run_until_power_cut(
    disk: ModelDisk, script: list[Step], expected: Expected, crash_after: int | None
) -> None:
    disk.crash_after = None if crash_after is None else disk.op_count + crash_after
    log = opened(disk, DIRECTORY, small_segments())
    for step in script:
        log = perform(log, disk, expected, step)


def crash_and_check(script: list[Step], crash_points: list[int], seed: int) -> None:
    """Run the script again and again, each time cut off at the next of `crash_points`."""
    disk = ModelDisk(seed=seed)
    disk.make_dir("/data")
    disk.sync_dir("/")
    expected = Expected()
    for number, crash_after in enumerate(crash_points):
        try:
            run_until_power_cut(disk, script, expected, crash_after)
        except PowerCut:
            disk.restart(seed + number)
        disk.crash_after = None  # the script may have been too short to reach it
        expected.check(opened(disk, DIRECTORY, small_segments()))


@given(
    script=st.lists(STEPS, max_size=25),
    crash_points=st.lists(st.integers(1, 150), min_size=1, max_size=3),
    seed=st.integers(0, 2**32),
)
def test_whenever_power_goes_what_was_flushed_is_there_and_nothing_else_is_new(
    script: list[Step], crash_points: list[int], seed: int
) -> None:
    crash_and_check(script, crash_points, seed)


LIFE: list[Step] = [
    *[("append", size) for size in (10, 50, 95, 20)],
    ("flush", 0),
    *[("append", size) for size in (60, 60, 60)],
    ("truncate", 50),
    *[("append", size) for size in (30, 91, 30)],
    ("flush", 0),
    ("drop", 0),
    ("roll", 0),
    ("append", 10),
    ("close", 0),
    ("append", 12),
]


# The log's own directory was not durable when recovery called everything flushed.
NEVER_FLUSHED: list[Step] = [("append", 8), ("append", 14), ("restart", 0), ("append", 0)]


@pytest.mark.parametrize("script", [LIFE, NEVER_FLUSHED])
@pytest.mark.parametrize("seed", range(6))
def test_a_power_cut_after_every_single_operation(script: list[Step], seed: int) -> None:
    disk = ModelDisk(seed=seed)
    disk.make_dir("/data")
    run_until_power_cut(disk, script, Expected(), None)
    for crash_after in range(1, disk.op_count + 1):
        crash_and_check(script, [crash_after], seed)


def test_a_power_cut_during_recovery_is_recovered_too(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY, small_segments())
    fill(log, 5)
    log.flush()
    fill(log, 5, first=5)
    values = [value or b"" for value in values_of(log)]
    for crash_after in range(1, 40):
        disk.crash_after = disk.op_count + crash_after
        try:
            found = opened(disk, DIRECTORY, small_segments())
        except PowerCut:
            disk.restart(crash_after)
            continue
        assert values_of(found) == values[: found.end_offset]
        assert found.end_offset >= 5
        break


def test_a_failed_read_is_not_mistaken_for_the_end(disk: ModelDisk) -> None:
    log = opened(disk, DIRECTORY)
    fill(log, 3)
    disk.fail_next("pread", errno.EIO, "*.log")
    with pytest.raises(StorageError, match="Input/output"):
        opened(disk, DIRECTORY)
    assert opened(disk, DIRECTORY).end_offset == 3
