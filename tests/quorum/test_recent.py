from hypothesis import given
from hypothesis import strategies as st

from quorum.recent import RecentBatches


def filled(sizes: list[int], bytes_max: int) -> tuple[RecentBatches, list[tuple[int, bytes]]]:
    """Batches of two offsets each, and all of them in a list."""
    recent, everything = RecentBatches(bytes_max), []
    for number, size in enumerate(sizes):
        data = bytes([number % 256]) * size
        recent.add(2 * number, 2 * number + 2, data)
        everything.append((2 * number, data))
    return recent, everything


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
    st.integers(0, 200),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(1, 200),
)
def test_it_is_a_part_of_the_log_or_nothing(
    sizes: list[int], bytes_max: int, offset: int, end_offset: int, max_bytes: int
) -> None:
    recent, everything = filled(sizes, bytes_max)
    found = recent.read(offset, end_offset=end_offset, max_bytes=max_bytes)
    wanted = [data for base, data in everything if base >= offset and base + 2 <= end_offset]
    if found is not None:
        assert offset % 2 == 0
        assert b"".join(wanted).startswith(bytes(found))
        assert len(found) == len(wanted[0]) or len(found) <= max_bytes
    elif wanted and offset % 2 == 0:
        kept = sum(len(data) for base, data in everything if base >= offset)
        assert kept > bytes_max  # too old


def test_all_that_fits_is_given_at_once() -> None:
    recent, everything = filled([10, 10, 10], 1_000)
    whole = b"".join(data for _, data in everything)
    assert recent.read(0, end_offset=6, max_bytes=30) == whole
    assert recent.read(0, end_offset=6, max_bytes=29) == whole[:20]
    assert recent.read(0, end_offset=5, max_bytes=30) == whole[:20]
    assert recent.read(2, end_offset=6, max_bytes=1) == whole[10:20]
    assert recent.read(0, end_offset=1, max_bytes=30) is None


def test_after_a_cut_nothing_of_before_is_given() -> None:
    recent, _ = filled([10, 10, 10], 1_000)
    recent.clear()
    assert recent.read(0, end_offset=9, max_bytes=100) is None
    recent.add(2, 4, b"new")
    assert recent.read(0, end_offset=9, max_bytes=100) is None
    assert recent.read(2, end_offset=9, max_bytes=100) == b"new"


def test_what_does_not_follow_begins_anew() -> None:
    recent, _ = filled([10, 10], 1_000)
    recent.add(100, 101, b"far")
    assert recent.read(0, end_offset=200, max_bytes=100) is None
    assert recent.read(100, end_offset=200, max_bytes=100) == b"far"
