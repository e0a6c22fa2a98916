"""What compaction leaves of one batch."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.record_batch import Record, RecordBatch, encode_batch, patch_append_time
from kraftlog.types import Compression, TimestampType
from storage.batch_filter import HORIZON_MS_MAX, BatchFilter, emptied
from storage.offset_map import OffsetMap
from tests.storage.keyed import Pair, keyed
from tests.storage.logs import TIME_MS

NOW_MS = TIME_MS + 1_000_000
DAY_MS = 86_400_000


def filter_for(
    *batches: RecordBatch,
    now_ms: int = NOW_MS,
    delete_retention_ms: int = DAY_MS,
    producers: Mapping[int, int] | None = None,
) -> BatchFilter:
    """A filter whose map has the keys of these batches, as a pass over them would fill it."""
    offset_map = OffsetMap(1 << 12)
    for batch in batches:
        assert offset_map.put(batch)
    return BatchFilter(
        offset_map,
        range(batches[0].base_offset, batches[-1].next_offset),
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        last_offset=(producers or {}).get,
    )


def at(base_offset: int, *pairs: Pair, compression: Compression = Compression.NONE) -> RecordBatch:
    return RecordBatch(keyed(*pairs, base_offset=base_offset, compression=compression))


def applied(batch_filter: BatchFilter, batch: RecordBatch) -> RecordBatch:
    kept = batch_filter.apply(batch)
    assert kept is not None
    kept.check_crc()
    return kept


# -- records that are replaced


@given(
    pairs=st.lists(
        st.tuples(st.one_of(st.none(), st.sampled_from([b"a", b"b", b"c"])), st.binary(max_size=3)),
        min_size=1,
        max_size=8,
    ),
    compression=st.sampled_from(list(Compression)),
)
def test_the_last_record_of_each_key_stays_where_it_is(  # R30
    pairs: list[Pair], compression: Compression
) -> None:
    batch = at(40, *pairs, compression=compression)
    last = {key: offset for offset, (key, _) in enumerate(pairs, 40) if key is not None}
    kept = filter_for(batch).apply(batch)
    expected = [record for record in batch.records() if record.offset in last.values()]
    if not expected:
        assert kept is None
        return
    assert kept is not None
    kept.check_crc()
    assert kept.records() == expected
    assert (kept.base_offset, kept.last_offset) == (batch.base_offset, batch.last_offset)
    assert kept.compression is batch.compression
    assert kept.max_timestamp == max(record.timestamp for record in expected)
    assert (kept is batch) == (len(expected) == len(pairs))


def test_the_rest_of_the_header_stays() -> None:
    batch = RecordBatch(
        encode_batch(
            [Record(offset, TIME_MS, b"k%d" % (offset % 2), b"v", ()) for offset in range(10, 13)],
            base_offset=10,
            leader_epoch=4,
            producer_id=7,
            producer_epoch=2,
            base_sequence=30,
        )
    )
    kept = applied(filter_for(batch), batch)
    assert [record.offset for record in kept.records()] == [11, 12]
    assert (kept.leader_epoch, kept.producer_id, kept.producer_epoch) == (4, 7, 2)
    assert (kept.base_sequence, kept.last_sequence) == (30, 32)


def test_append_time_stays() -> None:
    data = keyed((b"a", b"1"), (b"a", b"2"))
    patch_append_time(data, TIME_MS + 55)
    batch = RecordBatch(data)
    kept = applied(filter_for(batch), batch)
    assert kept.timestamp_type is TimestampType.APPEND
    assert [record.timestamp for record in kept.records()] == [TIME_MS + 55]


def test_what_comes_after_the_map_is_not_touched() -> None:
    beyond = at(1, (b"a", None), (None, b"no key"), (b"a", b"3"), (b"a", b"4"))
    assert filter_for(at(0, (b"a", b"1"))).apply(beyond) is beyond


# -- tombstones


def test_a_tombstone_gets_a_horizon_and_goes_when_that_has_passed() -> None:  # R30
    batch = at(3, (b"a", b"1"), (b"a", None), (b"b", b"2"))
    first = applied(filter_for(batch), batch)
    assert first.delete_horizon_ms == NOW_MS + DAY_MS
    assert first.records() == batch.records()[1:]
    before = filter_for(first, now_ms=NOW_MS + DAY_MS - 1)
    assert before.apply(first) is first
    last = applied(filter_for(first, now_ms=NOW_MS + DAY_MS), first)
    assert last.records() == batch.records()[2:]
    assert (last.base_offset, last.last_offset) == (3, 5)


def test_a_horizon_is_set_once() -> None:
    batch = at(0, (b"a", None), (b"b", None))
    first = applied(filter_for(batch), batch)
    replacing = at(2, (b"b", b"back"))
    second = applied(filter_for(first, replacing, now_ms=NOW_MS + 5), first)
    assert second.delete_horizon_ms == first.delete_horizon_ms
    assert second.records() == first.records()[:1]


def test_a_tombstone_that_is_replaced_at_once_needs_no_horizon() -> None:
    batch = at(0, (b"a", None), (b"a", b"back"))
    assert applied(filter_for(batch), batch).delete_horizon_ms is None


def test_a_tombstone_before_the_map_stays_without_a_horizon() -> None:
    """Whether older records of its key are left is not known."""
    before = at(0, (b"a", None))
    assert filter_for(at(1, (b"b", b"2"))).apply(before) is before


def test_a_tombstone_alone_in_its_batch_leaves_nothing() -> None:
    batch = at(0, (b"a", None))
    first = applied(filter_for(batch), batch)
    assert filter_for(first, now_ms=NOW_MS + DAY_MS).apply(first) is None


def test_a_retention_without_end_sets_a_horizon_that_can_be_written() -> None:
    batch = at(0, (b"a", None))
    kept = applied(filter_for(batch, delete_retention_ms=2**63 - 1), batch)
    assert kept.delete_horizon_ms == HORIZON_MS_MAX
    assert kept.records() == batch.records()


def test_a_timestamp_too_far_from_any_horizon_keeps_its_tombstone_forever() -> None:
    records = [Record(0, -(2**63) + 1, b"a", b"1", ()), Record(1, -(2**63) + 1, b"a", None, ())]
    batch = RecordBatch(encode_batch(records, base_offset=0))
    kept = applied(filter_for(batch, delete_retention_ms=2**63 - 1), batch)
    assert kept.delete_horizon_ms is None
    assert kept.records() == records[1:]
    again = filter_for(kept, now_ms=HORIZON_MS_MAX, delete_retention_ms=2**63 - 1)
    assert applied(again, kept).records() == records[1:]


# -- producers


@pytest.mark.parametrize("last_offset", [1, 5])
def test_only_the_last_batch_of_a_producer_is_kept_when_empty(last_offset: int) -> None:
    batch = RecordBatch(keyed((b"a", b"1"), (b"b", b"2"), producer=(7, 3, 20)))
    later = at(2, (b"a", b"3"), (b"b", b"4"))
    kept = filter_for(batch, later, producers={7: last_offset}).apply(batch)
    if last_offset == 5:
        assert kept is None
        return
    assert kept is not None
    kept.check_crc()
    assert (kept.count, kept.records()) == (0, [])
    assert (kept.base_offset, kept.last_offset) == (0, 1)
    assert (kept.producer_id, kept.producer_epoch) == (7, 3)
    assert (kept.base_sequence, kept.last_sequence) == (20, 21)
    assert kept.max_timestamp == batch.max_timestamp
    assert filter_for(later, producers={7: 1}).apply(kept) is kept
    assert filter_for(later, producers={7: 9}).apply(kept) is None


def test_an_empty_batch_has_nothing_more_to_lose() -> None:
    batch = emptied(at(0, (b"a", None)))
    assert emptied(batch) is batch


# -- transactions


def test_control_batches_stay_as_they_are() -> None:
    marker = RecordBatch(
        keyed((b"\0\0\0\1", b"\0\0\0\0\0\0"), producer=(7, 0, -1), is_control=True)
    )
    later = at(1, (b"\0\0\0\1", b"not a marker"))
    assert filter_for(marker, later, now_ms=2**60).apply(marker) is marker


def test_what_a_transaction_wrote_goes_only_for_something_that_is_certain() -> None:
    written = RecordBatch(
        keyed((b"a", b"1"), (b"a", b"2"), (b"b", None), producer=(7, 0, 0), is_transactional=True)
    )
    certain = at(3, (b"a", b"3"))
    uncertain_only = filter_for(at(0, (b"other", b"x")), at(3, (b"c", b"3")))
    assert uncertain_only.apply(written) is written
    kept = applied(filter_for(at(0, (b"other", b"x")), certain, now_ms=2**60), written)
    assert [(record.key, record.value) for record in kept.records()] == [(b"b", None)]
    assert (kept.is_transactional, kept.delete_horizon_ms) == (True, None)


def test_a_transaction_keeps_its_tombstones_whatever_horizon_a_leader_gave_it() -> None:
    fetched = RecordBatch(
        encode_batch(
            [Record(0, TIME_MS, b"a", None, ())],
            base_offset=0,
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
            delete_horizon_ms=TIME_MS + 1,
        )
    )
    assert filter_for(at(1, (b"b", b"1")), now_ms=2**60).apply(fetched) is fetched
