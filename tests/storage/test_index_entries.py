"""The entries of indexes made anew are those that appending would have made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import RecordBatch, encode_values
from storage.index_entries import MaxTimestamp, index_entries
from storage.model_disk import ModelDisk
from storage.segment import Segment

BASE = 1_000


def batch_at(offset: int, timestamp: int = 5, size: int = 30) -> RecordBatch:
    return RecordBatch(encode_values([b"x" * size], timestamp=timestamp, base_offset=offset))


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(-1, 50), st.integers(0, 2)), max_size=60),
    st.integers(0, 400),
)
def test_they_are_those_that_appending_makes(
    rows: list[tuple[int, int, int]], interval: int
) -> None:
    disk = ModelDisk()
    disk.make_dir("/t-0")
    segment = Segment.create(disk, "/t-0", BASE, index_interval_bytes=interval)
    for size, timestamp, gap in rows:
        segment.append([batch_at(segment.next_offset + gap, timestamp, size)])
    segment.seal()
    found = index_entries(segment.batches(0), BASE, interval)
    assert found.offsets == list(segment.offsets.entries())
    assert found.times == list(segment.times.entries())
    assert found.largest == segment.max_timestamp


def test_an_empty_segment_has_none() -> None:
    assert index_entries([], BASE, 100) == ([], [], MaxTimestamp(-1, BASE))


@pytest.mark.parametrize("offset", [BASE - 1, BASE + 3, BASE + 2**31])
def test_batches_that_cannot_be_of_this_segment_are_refused(offset: int) -> None:
    before = [(0, batch_at(BASE)), (100, batch_at(BASE + 3))]
    with pytest.raises(CorruptRecord, match=f"offset {offset} at byte 200"):
        index_entries([*before, (200, batch_at(offset))], BASE, 100)
