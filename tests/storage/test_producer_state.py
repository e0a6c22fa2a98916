"""Producer state against a model that keeps every batch, and its file against Kafka's format."""

import logging
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import InvalidProducerEpoch, OutOfOrderSequence
from kraftlog.record_batch import Record, RecordBatch, encode_batch, encode_values
from storage.damage import StateDamaged
from storage.model_disk import ModelDisk
from storage.producer_state import (
    REMEMBERED_BATCHES,
    SEQUENCE_MAX,
    Duplicate,
    ProducerEntry,
    ProducerStates,
    decode_snapshot,
    encode_snapshot,
)

PATH = "00000000000000000042.snapshot"
PRODUCER = 7
COMMIT = 1


def batch(
    offset: int,
    *,
    sequence: int,
    count: int = 1,
    epoch: int = 0,
    producer: int = PRODUCER,
    transactional: bool = False,
    timestamp: int = 1_000,
) -> RecordBatch:
    return RecordBatch(
        encode_values(
            [b"v"] * count,
            timestamp=timestamp,
            base_offset=offset,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
    )


def marker(
    offset: int,
    *,
    epoch: int = 0,
    coordinator_epoch: int = 3,
    producer: int = PRODUCER,
    timestamp: int = 2_000,
    value: bytes | None = None,
    kept: bool = True,
) -> RecordBatch:
    """The end of a transaction; not `kept`: what compaction leaves of one."""
    value = struct.pack(">hi", 0, coordinator_epoch) if value is None else value
    record = Record(offset, timestamp, struct.pack(">hh", 0, COMMIT), value, ())
    return RecordBatch(
        encode_batch(
            [record] if kept else [],
            base_offset=offset,
            last_offset=offset,
            producer_id=producer,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )
    )


def states_of(*batches: RecordBatch) -> ProducerStates:
    states = ProducerStates("t-0")
    for each in batches:
        states.update(each)
    return states


def reloaded(states: ProducerStates) -> ProducerStates:
    disk = ModelDisk()
    states.snapshot(disk, PATH)
    other = ProducerStates()
    other.load(disk, PATH)
    return other


# -- what a client may append


def test_an_unknown_producer_begins_with_any_sequence() -> None:
    states = states_of()
    assert states.check(batch(0, sequence=77)) is None
    assert states.check(batch(0, sequence=-1, epoch=-1, producer=-1)) is None


def test_the_next_sequence_goes_on() -> None:
    states = states_of(batch(10, sequence=5, count=3))
    assert states.check(batch(13, sequence=8)) is None
    with pytest.raises(OutOfOrderSequence) as caught:
        states.check(batch(13, sequence=9))
    for fact in ("producer 7", "sequence 9", "epoch 0", "expected 8"):
        assert fact in str(caught.value)
    assert caught.value.hint


def test_a_retry_is_one_even_where_it_would_also_come_next() -> None:
    """A follower took in a gap that ends where sequences wrap, and was then elected."""
    states = states_of(
        batch(0, sequence=0, timestamp=5), batch(1, sequence=SEQUENCE_MAX - 1, count=2)
    )
    assert states.check(batch(3, sequence=0)) == Duplicate(0, 0, 5)
    assert states.check(batch(3, sequence=0, count=2)) is None


def test_batches_without_a_sequence_are_no_retries() -> None:
    """Coordinators write such batches on behalf of a producer."""
    states = states_of(batch(0, sequence=-1), batch(1, sequence=-1))
    assert states.check(batch(2, sequence=-1)) is None


def test_sequences_wrap() -> None:
    states = states_of(batch(0, sequence=SEQUENCE_MAX - 1, count=2))
    assert states.check(batch(2, sequence=0)) is None
    with pytest.raises(OutOfOrderSequence, match="expected 0"):
        states.check(batch(2, sequence=1))
    states.update(batch(2, sequence=0, count=4))
    over = states_of(batch(0, sequence=SEQUENCE_MAX - 1, count=4))
    assert over.check(batch(4, sequence=2)) is None
    for either in (over, reloaded(over)):
        again = either.check(batch(9, sequence=SEQUENCE_MAX - 1, count=4))
        assert again == Duplicate(0, 3, 1_000)


def test_a_retry_of_one_of_the_last_five_is_a_duplicate() -> None:
    states = states_of(*(batch(100 + n, sequence=n, timestamp=n) for n in range(7)))
    for n in range(2, 7):
        assert states.check(batch(0, sequence=n)) == Duplicate(100 + n, 100 + n, n)
    for n in range(2):
        with pytest.raises(OutOfOrderSequence, match=f"sequence {n} .*expected 7"):
            states.check(batch(0, sequence=n))
    assert REMEMBERED_BATCHES == 5


def test_a_retry_has_the_same_first_and_last_sequence_and_epoch() -> None:
    states = states_of(batch(0, sequence=0, count=3))
    assert states.check(batch(9, sequence=0, count=3)) == Duplicate(0, 2, 1_000)
    for other in (batch(9, sequence=0, count=2), batch(9, sequence=1, count=2)):
        with pytest.raises(OutOfOrderSequence):
            states.check(other)
    assert states.check(batch(9, sequence=0, count=3, epoch=1)) is None


def test_an_older_epoch_is_fenced() -> None:
    states = states_of(batch(0, sequence=0, epoch=5))
    with pytest.raises(InvalidProducerEpoch) as caught:
        states.check(batch(1, sequence=0, epoch=4))
    for fact in ("producer 7", "epoch 4", "expected 5"):
        assert fact in str(caught.value)
    assert caught.value.hint


def test_a_newer_epoch_begins_with_sequence_zero() -> None:
    states = states_of(batch(0, sequence=0, epoch=5))
    assert states.check(batch(1, sequence=0, epoch=6)) is None
    with pytest.raises(OutOfOrderSequence, match="sequence 1 in epoch 6, expected 0"):
        states.check(batch(1, sequence=1, epoch=6))


def test_check_changes_nothing() -> None:
    states = states_of(batch(0, sequence=0))
    states.check(batch(1, sequence=1))
    states.check(batch(1, sequence=0, epoch=1))
    states.check(batch(1, sequence=3, producer=8))
    assert states.entries() == states_of(batch(0, sequence=0)).entries()


# -- what is in the log is true


def test_what_comes_by_replication_is_taken_in_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    states = states_of(batch(0, sequence=0), batch(1, sequence=1))
    assert not caplog.records
    states.update(batch(2, sequence=5))
    assert "t-0 offset 2" in caplog.text
    assert "expected 2" in caplog.text
    states.update(batch(3, sequence=9))
    states.update(batch(4, sequence=0, epoch=3))
    states.update(batch(5, sequence=1, epoch=2))
    assert len(caplog.records) == 1
    assert states.gaps == 3
    assert states.check(batch(6, sequence=2, epoch=2)) is None
    with pytest.raises(OutOfOrderSequence):
        states.check(batch(6, sequence=1, epoch=3))


def test_a_batch_without_producer_leaves_no_trace() -> None:
    states = states_of(batch(0, sequence=-1, epoch=-1, producer=-1))
    assert len(states) == 0


def test_a_batch_without_sequence_is_judged_by_its_epoch_alone() -> None:
    states = states_of(batch(0, sequence=0, epoch=2), batch(1, sequence=-1, epoch=2))
    assert states.gaps == 0
    assert states.check(batch(2, sequence=-1, epoch=2)) is None
    with pytest.raises(InvalidProducerEpoch):
        states.check(batch(2, sequence=-1, epoch=1))
    assert reloaded(states).entries() == states.entries()


# -- transactions


def test_a_marker_closes_the_transaction_and_keeps_the_sequences() -> None:
    states = states_of(
        batch(10, sequence=0, transactional=True), batch(11, sequence=1, transactional=True)
    )
    assert states.first_unstable_offset() == 10
    states.update(marker(12, coordinator_epoch=4))
    assert states.first_unstable_offset() is None
    assert states.gaps == 0
    assert states.check(batch(13, sequence=2, transactional=True)) is None
    assert states.check(batch(13, sequence=1)) == Duplicate(11, 11, 1_000)
    assert states.entries() == [ProducerEntry(7, 0, 1, 11, 0, 2_000, 4, -1)]
    states.update(batch(13, sequence=2, transactional=True))
    assert states.first_unstable_offset() == 13


def test_a_marker_of_a_newer_epoch_forgets_the_older_batches() -> None:
    states = states_of(batch(10, sequence=0, transactional=True), marker(11, epoch=1))
    assert states.entries() == [ProducerEntry(7, 1, -1, -1, 0, 2_000, 3, -1)]
    for either in (states, reloaded(states)):
        assert either.check(batch(12, sequence=0, epoch=1)) is None
        assert either.last_offsets() == {}
        assert either.last_data_offset(PRODUCER) is None
        with pytest.raises(OutOfOrderSequence, match="expected 0"):
            either.check(batch(12, sequence=1, epoch=1))


def test_a_marker_of_an_unknown_producer_makes_it_known() -> None:
    states = states_of(marker(5, epoch=2))
    with pytest.raises(InvalidProducerEpoch):
        states.check(batch(6, sequence=0, epoch=1))


def test_a_zombies_marker_is_fenced() -> None:
    states = states_of(batch(0, sequence=0, epoch=2))
    assert states.check(marker(1, epoch=2)) is None
    with pytest.raises(InvalidProducerEpoch):
        states.check(marker(1, epoch=1))


def test_a_marker_that_compaction_emptied_says_nothing() -> None:
    states = states_of(batch(10, sequence=0, transactional=True), marker(11, epoch=1, kept=False))
    assert states.first_unstable_offset() == 10
    assert states.entries()[0].epoch == 0


def test_an_unreadable_marker_still_closes(caplog: pytest.LogCaptureFixture) -> None:
    states = states_of(batch(10, sequence=0, transactional=True), marker(11, coordinator_epoch=6))
    states.update(batch(12, sequence=1, transactional=True))
    states.update(marker(13, value=b"\0"))
    assert "offset 13: unreadable transaction marker of producer 7" in caplog.text
    assert states.first_unstable_offset() is None
    assert states.entries()[0].coordinator_epoch == 6


def test_the_oldest_open_transaction_bounds_what_is_stable() -> None:
    states = states_of(
        batch(0, sequence=0, producer=1, transactional=True),
        batch(1, sequence=0, producer=2, transactional=True),
        batch(2, sequence=1, producer=1, transactional=True),
        batch(3, sequence=0, producer=0, transactional=True),
        marker(4, producer=1),
    )
    for either in (states, reloaded(states)):
        assert either.first_unstable_offset() == 1
        either.update(marker(5, producer=2))
        assert either.first_unstable_offset() == 3
        either.update(marker(6, producer=0))
        assert either.first_unstable_offset() is None


# -- keeping and forgetting


def test_the_last_offset_of_each_producer_in_order() -> None:
    states = states_of(
        batch(0, sequence=0, producer=9, count=3),
        batch(3, sequence=0, producer=2),
        batch(4, sequence=3, producer=9, count=2),
        marker(6, producer=5),
    )
    assert list(states.last_offsets().items()) == [(2, 3), (9, 5)]
    assert [states.last_data_offset(producer) for producer in (2, 5, 9, 1)] == [3, None, 5, None]
    assert len(states) == 3


def test_idle_producers_expire_but_not_amid_a_transaction() -> None:
    states = states_of(
        batch(0, sequence=0, producer=3, timestamp=100),
        batch(1, sequence=0, producer=1, timestamp=100, transactional=True),
        batch(2, sequence=0, producer=2, timestamp=101),
        batch(3, sequence=0, producer=0, timestamp=90),
    )
    assert states.expire(now_ms=199, expiration_ms=100) == [0]
    assert states.expire(now_ms=200, expiration_ms=100) == [3]
    assert states.expire(now_ms=10**9, expiration_ms=100) == [2]
    assert len(states) == 1
    states.update(marker(4, producer=1, timestamp=300))
    assert states.expire(now_ms=399, expiration_ms=100) == []
    assert states.expire(now_ms=400, expiration_ms=100) == [1]
    assert states.check(batch(5, sequence=44, producer=1)) is None


def test_clear_forgets_all() -> None:
    states = states_of(batch(0, sequence=0, transactional=True))
    states.clear()
    assert (len(states), states.first_unstable_offset(), states.entries()) == (0, None, [])


def test_a_producer_never_costs_more_than_five_batches() -> None:
    states = states_of(*(batch(n, sequence=n) for n in range(50)))
    assert [len(producer.batches) for producer in states._producers.values()] == [5]


# -- the file


def crc32c_by_bits(data: bytes) -> int:
    """The textbook form, so that the file's checksum is not judged by the code that made it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_snapshot_is_kafkas_file() -> None:
    disk = ModelDisk()
    states_of(
        batch(40, sequence=6, count=3, epoch=2, producer=258, transactional=True, timestamp=772),
        marker(43, producer=5, epoch=1, coordinator_epoch=9, timestamp=773),
    ).snapshot(disk, PATH)
    entries = bytes.fromhex(
        "00000002"
        # id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, txn
        "0000000000000005 0001 ffffffff ffffffffffffffff 00000000"
        "0000000000000305 00000009 ffffffffffffffff"
        "0000000000000102 0002 00000008 000000000000002a 00000002"
        "0000000000000304 ffffffff 0000000000000028"
    )
    head = struct.pack(">hI", 1, crc32c_by_bits(entries))
    assert disk.read_bytes(PATH) == head + entries


def test_a_snapshot_of_nobody() -> None:
    assert encode_snapshot([]) == struct.pack(">hIi", 1, crc32c_by_bits(bytes(4)), 0)
    assert decode_snapshot(encode_snapshot([]), PATH) == []
    assert reloaded(states_of()).entries() == []


def test_a_reload_replaces_all_and_remembers_one_batch() -> None:
    states = states_of(*(batch(n, sequence=n) for n in range(5)))
    disk = ModelDisk()
    states.snapshot(disk, PATH)
    other = states_of(batch(0, sequence=0, producer=99, transactional=True))
    other.load(disk, PATH)
    assert other.entries() == states.entries()
    assert other.first_unstable_offset() is None
    assert other.check(batch(9, sequence=4)) == Duplicate(4, 4, 1_000)
    assert other.check(batch(9, sequence=5)) is None
    with pytest.raises(OutOfOrderSequence):
        other.check(batch(9, sequence=3))


def test_a_durable_snapshot_survives_a_power_cut() -> None:
    disk = ModelDisk()
    states_of(batch(0, sequence=0)).snapshot(disk, PATH)
    for seed in range(20):
        found = ProducerStates()
        found.load(disk.fork().restart(seed), PATH)
        assert found.last_offsets() == {PRODUCER: 0}


def test_any_other_snapshot_is_the_old_one_the_new_one_or_damage() -> None:
    disk = ModelDisk()
    states = states_of(batch(0, sequence=0))
    states.snapshot(disk, PATH)
    states.update(batch(1, sequence=1))
    states.snapshot(disk, PATH, durable=False)
    outcomes = set()
    for seed in range(60):
        found = ProducerStates()
        try:
            found.load(disk.fork().restart(seed), PATH)
            outcomes.add(found.last_data_offset(PRODUCER))
        except StateDamaged:
            outcomes.add(None)
    assert outcomes == {0, 1, None}


def test_every_flipped_bit_and_every_cut_is_damage() -> None:
    whole = encode_snapshot(
        states_of(batch(0, sequence=0), batch(1, sequence=0, producer=8)).entries()
    )
    broken = [whole[:length] for length in range(len(whole))]
    for bit in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        broken.append(bytes(flipped))
    for data in [*broken, whole + b"\0"]:
        with pytest.raises(StateDamaged, match=PATH):
            decode_snapshot(data, PATH)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([ProducerEntry(-1, 0, 0, 0, 0, 0, 0, -1)], "impossible"),
        ([ProducerEntry(1, 0, 0, 5, 6, 0, 0, -1)], "impossible"),
        ([ProducerEntry(1, 0, 0, 5, -1, 0, 0, -1)], "impossible"),
        ([ProducerEntry(1, 0, 0, 5, 0, 0, 0, -1)] * 2, "twice"),
    ],
)
def test_a_good_checksum_does_not_excuse_nonsense(entries: list[ProducerEntry], why: str) -> None:
    with pytest.raises(StateDamaged, match=why):
        decode_snapshot(encode_snapshot(entries), PATH)


def test_a_count_that_does_not_match_is_damage() -> None:
    body = struct.pack(">i", -1)
    with pytest.raises(StateDamaged, match="0 bytes for -1 entries"):
        decode_snapshot(struct.pack(">hI", 1, crc32c_by_bits(body)) + body, PATH)


def test_a_failed_load_changes_nothing() -> None:
    states = states_of(batch(0, sequence=0))
    disk = ModelDisk()
    with pytest.raises(StateDamaged, match="is missing"):
        states.load(disk, PATH)
    disk.write_atomic(PATH, b"\0\1")
    with pytest.raises(StateDamaged, match="only 2 bytes"):
        states.load(disk, PATH)
    assert states.last_offsets() == {PRODUCER: 0}


@given(
    st.lists(
        st.builds(
            ProducerEntry,
            st.integers(0, 2**63 - 1),
            st.integers(-1, 2**15 - 1),
            st.integers(-1, SEQUENCE_MAX),
            st.integers(2**31, 2**63 - 1),
            st.integers(0, SEQUENCE_MAX),
            st.integers(-1, 2**63 - 1),
            st.integers(-1, SEQUENCE_MAX),
            st.integers(-1, 2**63 - 1),
        ),
        unique_by=lambda entry: entry.producer_id,
    )
)
def test_a_snapshot_comes_back_as_it_was(entries: list[ProducerEntry]) -> None:
    disk = ModelDisk()
    disk.write_atomic(PATH, encode_snapshot(entries))  # in any order, as Kafka writes them
    states = ProducerStates()
    states.load(disk, PATH)
    assert states.entries() == sorted(entries)
    open_at = [entry[-1] for entry in entries if entry[-1] >= 0]
    assert states.first_unstable_offset() == min(open_at, default=None)
