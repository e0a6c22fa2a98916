"""The offset map against a dict, in both codecs."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog import _codec
from kraftlog._codec_types import SLOT_BYTES
from kraftlog.errors import ConfigError, CorruptRecord
from kraftlog.record_batch import RecordBatch
from kraftlog.types import Compression
from storage.offset_map import OffsetMap
from tests.storage.keyed import Pair, keyed

KEYS = st.one_of(st.none(), st.binary(max_size=20), st.sampled_from([b"a", b"b", b"c"]))
PAIRS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=5))), max_size=6)


@pytest.fixture(params=["native", "pure"], autouse=True)
def _codecs(request: pytest.FixtureRequest) -> Iterator[None]:
    chosen = _codec.codec
    try:
        _codec.codec = _codec.load_codec(request.param)
    except ConfigError:
        pytest.skip("the native codec is not built")
    yield
    _codec.codec = chosen


def batch_at(
    base_offset: int, *pairs: Pair, compression: Compression = Compression.NONE
) -> RecordBatch:
    return RecordBatch(keyed(*pairs, base_offset=base_offset, compression=compression))


@given(
    batches=st.lists(st.tuples(PAIRS.filter(bool), st.booleans()), max_size=12),
    slots=st.integers(2, 40),
    from_offset=st.integers(0, 10),
)
def test_it_knows_the_last_offset_of_each_key_within_its_memory(  # R30
    batches: list[tuple[list[Pair], bool]], slots: int, from_offset: int
) -> None:
    offset_map = OffsetMap(slots * SLOT_BYTES)
    known: dict[bytes, int] = {}
    offset = 0
    for pairs, compressed in batches:
        compression = Compression.GZIP if compressed else Compression.NONE
        fits = offset_map.put(batch_at(offset, *pairs, compression=compression), from_offset)
        for at, (key, _) in enumerate(pairs, offset):
            if key is None or at < from_offset:
                continue
            if key not in known and len(known) == offset_map.capacity:
                assert not fits
                break
            known[key] = at
        else:
            assert fits
        offset += len(pairs)
        assert len(offset_map) == len(known) <= offset_map.capacity
    assert {key: offset_map.get(key) for key in known} == known
    assert offset_map.get(b"never put, and longer than any that was") is None
    assert offset_map.memory_bytes <= slots * SLOT_BYTES


@given(before=PAIRS.filter(bool), after=PAIRS.filter(bool), drop_tombstones=st.booleans())
def test_it_retains_what_nothing_later_replaces(
    before: list[Pair], after: list[Pair], drop_tombstones: bool
) -> None:
    first, second = batch_at(7, *before), batch_at(7 + len(before), *after)
    offset_map = OffsetMap(1 << 10)
    assert offset_map.put(second)
    later = {key for key, _ in after}
    kept = [
        (key, value)
        for key, value in before
        if key is not None and key not in later and not (drop_tombstones and value is None)
    ]
    retained = offset_map.retain(first, drop_tombstones=drop_tombstones)
    assert (retained.rows, retained.tombstones) == (
        len(kept),
        sum(value is None for _, value in kept),
    )
    rebuilt = RecordBatch(first.rebuild(retained.data, retained.rows, max_timestamp=0))
    assert [(record.key, record.value) for record in rebuilt.records()] == kept


def test_a_key_costs_24_bytes_whatever_its_length() -> None:  # R30
    offset_map = OffsetMap(24 * 1_000, load_factor=0.5)
    assert offset_map.capacity == 500
    for number in range(500):
        assert offset_map.put(batch_at(number, (b"%d" % number * 100, b"v")))
    assert not offset_map.put(batch_at(500, (b"one more", b"v")))
    assert (len(offset_map), offset_map.memory_bytes) == (500, 24_000)


@pytest.mark.parametrize("keys", [1, 2, 9, 10, 1_000])
def test_no_more_memory_than_the_expected_keys_need(keys: int) -> None:
    offset_map = OffsetMap(128 << 20, keys_expected=keys)
    assert keys <= offset_map.capacity <= keys + 2
    assert offset_map.memory_bytes < (keys / 0.9 + 3) * SLOT_BYTES
    assert offset_map.put(batch_at(0, *[(b"%d" % number, b"v") for number in range(keys)]))


def test_no_memory_and_no_room_are_refused() -> None:
    with pytest.raises(ConfigError, match="no room for a single key"):
        OffsetMap(SLOT_BYTES)
    with pytest.raises(ConfigError, match=r"load\.factor=1"):
        OffsetMap(1 << 20, load_factor=1)


def test_a_batch_that_is_none_is_named() -> None:
    data = keyed((b"key", b"value"), base_offset=5)
    data[61] += 2  # the length of the first record
    offset_map = OffsetMap(1 << 10)
    with pytest.raises(CorruptRecord, match="batch at offset 5"):
        offset_map.put(RecordBatch(data))
    with pytest.raises(CorruptRecord, match="batch at offset 5"):
        offset_map.retain(RecordBatch(data), drop_tombstones=False)
