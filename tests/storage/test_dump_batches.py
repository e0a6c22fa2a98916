"""Reading batches of a file that may end or break anywhere."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.record_batch import HEADER_BYTES, encode_values
from storage.dump_batches import READ_BYTES, BatchReader, Unreadable
from storage.files import File
from storage.model_disk import ModelDisk

PATH = "/segment"


def encoded(offset: int, size: int = 20) -> bytes:
    return encode_values([b"v" * size], timestamp=1, base_offset=offset)


def stored(data: bytes) -> File:
    file = ModelDisk().open(PATH, create=True)
    file.pwrite([data], 0)
    return file


def refusal(data: bytes, position: int = 0) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        BatchReader(stored(data)).batch_at(position)
    return caught.value


def test_batches_are_found_across_the_pieces_that_are_read() -> None:
    sizes = [10, READ_BYTES, 300_000, 500_000, 400_000, 2 * READ_BYTES, 1]
    data = [encoded(number, size) for number, size in enumerate(sizes)]
    found = [
        (position, batch.base_offset, batch.size)
        for position, batch in BatchReader(stored(b"".join(data))).batches()
    ]
    positions = [len(b"".join(data[:number])) for number in range(len(data))]
    assert found == [
        (position, number, len(each))
        for number, (position, each) in enumerate(zip(positions, data, strict=True))
    ]


def test_a_batch_before_the_piece_in_memory_is_read_anew() -> None:
    data = encoded(0) + encoded(1)
    reader = BatchReader(stored(data))
    assert reader.read_again(len(encoded(0))).base_offset == 1
    assert reader.batch_at(0).base_offset == 0


@pytest.mark.parametrize("kept", [1, 8, 12, 17, HEADER_BYTES - 1])
def test_a_cut_header_is_told_from_nonsense(kept: int) -> None:
    bad = refusal(encoded(5)[:kept])
    assert bad.is_cut
    assert bad.what == f"the file ends inside a batch header: {kept} of {HEADER_BYTES} bytes"


def test_a_cut_batch_is_told_from_nonsense() -> None:
    whole = encoded(5)
    bad = refusal(whole[:-1])
    assert bad.is_cut
    assert bad.what == f"the file ends inside a batch: {len(whole) - 1} of {len(whole)} bytes"


@pytest.mark.parametrize(
    ("position", "value", "what"),
    [
        (8, 0x7F, "no batch has length field"),
        (8, 0xFF, "no batch has length field -"),
        (16, 1, "magic 1 where 2 is expected"),
    ],
)
def test_a_broken_frame_leads_nowhere(position: int, value: int, what: str) -> None:
    data = bytearray(encoded(5))
    data[position] = value
    bad = refusal(bytes(data))
    assert bad.what.startswith(what)
    assert not bad.is_cut
    assert bad.next_position is None


def test_zeros_are_called_zeros() -> None:
    assert refusal(bytes(4096)).what == "zeros where a batch should begin"


def test_a_bad_header_still_says_where_the_next_batch_begins() -> None:
    data = bytearray(encoded(5))
    data[21] = 0x80  # attributes that nobody knows
    bad = refusal(bytes(data) + encoded(6))
    assert "unknown attributes" in bad.what
    assert bad.next_position == len(data)


def test_what_was_written_since_is_seen() -> None:
    file = stored(encoded(0)[:30])
    reader = BatchReader(file)
    with pytest.raises(Unreadable):
        reader.batch_at(0)
    file.pwrite([encoded(0)], 0)
    assert reader.batch_at(0).base_offset == 0


@given(st.binary(max_size=200), st.integers(0, 200))
def test_garbage_is_refused_or_a_batch_but_never_an_error_of_ours(data: bytes, at: int) -> None:
    whole = encoded(0) + data
    with contextlib.suppress(Unreadable):
        assert BatchReader(stored(whole)).batch_at(at).size <= len(whole) - at
