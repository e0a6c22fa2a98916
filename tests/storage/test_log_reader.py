"""What a reader remembers must never change what it finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.record_batch import read_batches
from storage.log_reader import READ_HINTS_MAX
from storage.model_disk import ModelDisk
from storage.segment import Boundary, Extent
from tests.storage.logs import batch, fill, opened, small_segments


@given(
    st.lists(st.tuples(st.sampled_from(["append", "read", "cut"]), st.integers(0, 99)), max_size=40)
)
def test_reading_in_any_order_with_cuts_between_finds_what_is_there(
    steps: list[tuple[str, int]],
) -> None:
    log = opened(ModelDisk(), "/t-0", small_segments())
    written: list[bytes] = []
    for kind, number in steps:
        if kind == "append":
            data = batch(b"%d" % number * (1 + number % 40))
            log.append(data, leader_epoch=0)
            written.append(bytes(data))
        elif kind == "cut":
            del written[log.truncate_to(log.end_offset * number // 100) :]
        elif written:
            offset = number % len(written)
            part = log.read(offset, number * 10)
            assert part.read() == b"".join(written[offset : part.next_offset])
            assert part.next_offset > offset


def test_hints_are_bounded() -> None:
    log = opened(ModelDisk(), "/t-0")
    fill(log, READ_HINTS_MAX * 3)
    for offset in range(READ_HINTS_MAX * 2):
        log.read(offset, 1)
    assert len(log._reader._hints) <= READ_HINTS_MAX


def test_a_reader_at_a_remembered_end_sees_what_was_appended_since() -> None:
    log = opened(ModelDisk(), "/t-0")
    fill(log, 2)
    end = log.read(0, 1 << 20).next_offset
    assert log.read(end, 100).read() == b""
    fill(log, 1, first=2)
    assert log.read(end, 100).next_offset == 3


def test_what_a_cut_made_wrong_amid_a_read_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reads take no lock. This one has found its batches when another thread cuts them off."""
    log = opened(ModelDisk(), "/t-0")
    fill(log, 10)
    segment = log.segments[0]
    boundary = segment.boundary

    def cut_after(first: Extent, limit_position: int) -> Boundary:
        found = boundary(first, limit_position)
        monkeypatch.undo()
        log.truncate_to(1)
        fill(log, 9, leader_epoch=1, size=23, first=1)
        return found

    monkeypatch.setattr(segment, "boundary", cut_after)
    offset = log.read(0, 500).next_offset
    assert 1 < offset < 10
    values = [view.records()[0].value for view in read_batches(log.read(offset, 1 << 20).read())]
    assert values == [b"%d:" % number + b"." * 23 for number in range(offset, 10)]
