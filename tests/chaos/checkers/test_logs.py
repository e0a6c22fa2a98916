from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.checkers.logs import LogFiles, read_log
from storage.producer_state import SEQUENCE_MAX
from tests.chaos.checkers.directories import batch, flipped, write_log
from tests.chaos.checkers.scripts import named

GOOD = [batch(0, b"a", b"b"), batch(2, b"c"), batch(3, b"d", epoch=1)]


def read(directory: Path, *, is_compacted: bool = False) -> LogFiles:
    return read_log("b1", directory, is_compacted=is_compacted)


def test_a_sound_log_is_read_as_it_is(tmp_path: Path) -> None:
    log = read_log("b1", write_log(tmp_path, GOOD, flushed=4), with_values=True)
    assert log.findings == []
    assert [(each.offset, each.next_offset, each.epoch) for each in log.entries] == [
        (0, 2, 0),
        (2, 3, 0),
        (3, 4, 1),
    ]
    assert [each.values for each in log.entries] == [(b"a", b"b"), (b"c",), (b"d",)]
    assert (log.start, log.end) == (0, 4)
    assert [each.offset for each in log.between(1, 4)] == [2, 3]


def test_no_directory_is_an_empty_log(tmp_path: Path) -> None:
    log = read(tmp_path / "nothing")
    assert (log.entries, log.findings, log.start, log.end) == ([], [], 0, 0)


def test_a_log_of_which_the_beginning_was_dropped_begins_where_it_begins(tmp_path: Path) -> None:
    log = read(write_log(tmp_path, [batch(7, b"a")], [batch(8, b"b")]))
    assert (log.start, log.end, log.findings) == (7, 9, [])


@pytest.mark.parametrize(
    ("batches", "rule", "words"),
    [
        ([batch(0, b"a"), batch(2, b"c")], "P7", "offsets 1 to 1 are missing"),
        ([batch(0, b"a"), batch(0, b"c")], "P7", "offset 0, where 1 comes next"),
        ([batch(0, b"a", epoch=2), batch(1, b"c", epoch=1)], "P7", "leader epoch 1"),
        ([batch(0, b"a"), flipped(batch(1, b"c"))], "P10", "stored crc"),
        ([batch(0, b"a"), bytes(80)], "P10", "byte"),
    ],
    ids=["gap", "twice", "epoch falls", "bit", "zeros"],
)
def test_what_cannot_be_is_found(
    tmp_path: Path, batches: list[bytes], rule: str, words: str
) -> None:
    found = read(write_log(tmp_path, batches)).findings
    assert named(found) == [rule]
    assert words in found[0].words


def test_a_gap_of_a_compacted_log_is_none(tmp_path: Path) -> None:
    path = write_log(tmp_path, [batch(0, b"a"), batch(9, b"c")])
    assert read(path, is_compacted=True).findings == []


def test_a_batch_that_was_still_being_written_is_no_damage(tmp_path: Path) -> None:
    path = write_log(tmp_path, [*GOOD, batch(4, b"e")[:-3]])
    assert read(path).findings == []


def test_what_was_flushed_and_is_cut_is_damage(tmp_path: Path) -> None:
    path = write_log(tmp_path, [*GOOD, batch(4, b"e")[:-3]], flushed=5)
    assert named(read(path).findings) == ["P10"]


def test_what_was_flushed_and_is_gone_is_damage(tmp_path: Path) -> None:
    found = read(write_log(tmp_path, GOOD, flushed=9)).findings
    assert named(found) == ["P7"]
    assert found[0].words == "the log ends at 4, and all below 9 was flushed"


def test_a_cut_in_a_segment_that_is_not_the_last_is_damage(tmp_path: Path) -> None:
    path = write_log(tmp_path, [*GOOD, batch(4, b"e")[:-3]], [batch(5, b"f", epoch=1)])
    assert named(read(path).findings) == ["P10"]  # and no gap beside it


def test_the_sequences_of_a_producer_count_on(tmp_path: Path) -> None:
    """P8. It may begin anywhere, wrap, and begin anew with its next epoch."""
    good = [
        batch(0, b"a", b"b", producer=(7, 0, SEQUENCE_MAX - 1)),
        batch(2, b"c", producer=(7, 0, 0)),
        batch(3, b"d", producer=(7, 1, 0)),
        batch(4, b"e", producer=(8, 0, 5)),
    ]
    assert read(write_log(tmp_path / "good", good)).findings == []
    bad = [*good, batch(5, b"f", producer=(7, 1, 3)), batch(6, b"g", producer=(7, 0, 9))]
    found = read(write_log(tmp_path / "bad", bad)).findings
    assert named(found) == ["P8", "P8"]
    assert "sequence 3, where 1 comes next" in found[0].words
    assert "falls from epoch 1 to 0" in found[1].words


@given(at=st.integers(0, len(b"".join(GOOD)) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found_wherever_it_is(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int
) -> None:
    """All but those outside the CRC that say something else that makes sense: an epoch."""
    data = bytearray(b"".join(GOOD))
    data[at] ^= 1 << bit
    log = read(write_log(tmp_path_factory.mktemp("log"), [bytes(data)], flushed=4))
    sound = read(write_log(tmp_path_factory.mktemp("log"), GOOD, flushed=4))
    assert log.findings or log.entries != sound.entries
