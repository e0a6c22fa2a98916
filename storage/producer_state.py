"""What a partition remembers of each producer, so that a retried batch is not appended twice.

A producer numbers its records; a batch carries the number of its first one, its sequence. From the
last five batches of each producer the log tells a retry (the same numbers again: answer with the
offsets of then), the next batch (its sequence follows), and anything else (something is missing in
between, or another instance of the producer, with a higher epoch, has taken over).

Only `check` refuses, and only clients' appends pass it. `update` takes in whatever is in the log:
what the leader accepted is true for its followers, and after a restart too.

A snapshot is Kafka's file, version 1: version int16, CRC-32C uint32 of all that follows, count
int32, and entries of 46 bytes. It holds one batch of each producer, the last; the older four are
forgotten over a restart, as in Kafka.

Not thread-safe: the log's lock covers it. Only what compaction asks, `first_unstable_offset` and
`last_data_offset`, needs no lock: each looks once.
"""

import logging
import struct
from collections import OrderedDict, deque
from typing import NamedTuple

from crc32c import crc32c

from kraftlog.errors import (
    CorruptRecord,
    InvalidProducerEpoch,
    KraftError,
    OutOfOrderSequence,
)
from kraftlog.record_batch import RecordBatch
from kraftlog.types import NO_EPOCH, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from storage.damage import StateDamaged, read_derived
from storage.files import Files

logger = logging.getLogger(__name__)

REMEMBERED_BATCHES = 5
"""A producer has at most so many requests in flight, so a retry is one of its last batches."""
SEQUENCE_MAX = 2**31 - 1
SNAPSHOT_VERSION = 1
NO_OFFSET = -1

_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_MARKER = struct.Struct(">hi")  # value of an end-transaction marker: version, coordinator epoch


class Duplicate(NamedTuple):
    """A batch that is in the log already, and where."""

    base_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry(NamedTuple):
    """One producer as a snapshot has it, field by field; -1 stands for none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


class _Batch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class _Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "timestamp")

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = NO_EPOCH
        self.timestamp = NO_TIMESTAMP
        self.batches: deque[_Batch] = deque(maxlen=REMEMBERED_BATCHES)

    def enter_epoch(self, epoch: int) -> None:
        """Sequences begin anew with each epoch, so older batches say nothing any more."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def next_sequence(self) -> int:
        """What follows the last batch; 0 where an epoch has only a transaction marker so far."""
        return (self.batches[-1].last_sequence + 1) & SEQUENCE_MAX if self.batches else 0

    def find(self, batch: RecordBatch) -> Duplicate | None:
        if batch.producer_epoch != self.epoch or batch.base_sequence == NO_SEQUENCE:
            return None
        sequences = (batch.base_sequence, batch.last_sequence)
        for known in self.batches:
            if known[:2] == sequences:
                return Duplicate(known.first_offset, known.last_offset, known.timestamp)
        return None


class ProducerStates:
    """The producers of one partition. `log_name` is for messages."""

    def __init__(self, log_name: str = "") -> None:
        self.log_name = log_name
        self.gaps = 0
        """How many batches `update` took in that `check` would have refused."""
        self._producers: dict[int, _Producer] = {}
        # Producer id -> first offset of its open transaction. Transactions open in the order of the
        # log, so the first one is always the oldest.
        self._open_transactions: OrderedDict[int, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, batch: RecordBatch) -> Duplicate | None:
        """Judge a batch that a client wants to append: None to go on, or where it is already.

        Raises OutOfOrderSequence or InvalidProducerEpoch. A producer that is not known may begin
        with any sequence: what it wrote before may have been deleted by age.
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return None
        # First, as in Kafka: after a gap and a wrap a retry can also be what comes next.
        duplicate = producer.find(batch)
        if duplicate is not None:
            return duplicate
        refusal = _refusal(producer, batch)
        if refusal is not None:
            raise refusal
        return None

    def update(self, batch: RecordBatch) -> None:
        """Take in a batch of the log, whoever wrote it. Batches come in the order of the log."""
        producer_id = batch.producer_id
        if producer_id < 0:
            return
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer()
        else:
            refusal = _refusal(producer, batch)
            if refusal is not None:
                self._note_gap(refusal, batch)
        if batch.is_control:
            self._end_transaction(producer, batch)
            return
        producer.enter_epoch(batch.producer_epoch)
        producer.timestamp = timestamp = batch.max_timestamp
        base_offset = batch.base_offset
        producer.batches.append(
            _Batch(
                batch.base_sequence,
                batch.last_sequence,
                base_offset,
                batch.last_offset,
                timestamp,
            )
        )
        if batch.is_transactional:
            self._open_transactions.setdefault(producer_id, base_offset)

    def _note_gap(self, refusal: KraftError, batch: RecordBatch) -> None:
        """Warn once only: compaction keeps no more than a producer's last batch, so gaps abound."""
        level = logging.DEBUG if self.gaps else logging.WARNING
        self.gaps += 1
        logger.log(level, "%s offset %d: %s", self.log_name, batch.base_offset, refusal)

    def _end_transaction(self, producer: _Producer, marker: RecordBatch) -> None:
        if not marker.count:
            return  # Compaction has dropped the whole transaction.
        producer.enter_epoch(marker.producer_epoch)
        producer.timestamp = marker.max_timestamp
        producer.coordinator_epoch = self._coordinator_epoch(marker, producer.coordinator_epoch)
        self._open_transactions.pop(marker.producer_id, None)

    def _coordinator_epoch(self, marker: RecordBatch, current: int) -> int:
        try:
            value = marker.records()[0].value or b""
            _, epoch = _MARKER.unpack_from(value)
        except (CorruptRecord, struct.error) as error:
            logger.warning(
                "%s offset %d: unreadable transaction marker of producer %d: %s",
                self.log_name,
                marker.base_offset,
                marker.producer_id,
                error,
            )
            return current
        return int(epoch)

    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that is still open.

        A transaction whose marker is in the log counts as closed, whether or not the marker is
        below the high watermark yet.
        """
        return next(iter(list(self._open_transactions.values())), None)

    def last_data_offset(self, producer_id: int) -> int | None:
        """The last offset of a producer's last batch, markers not counted."""
        try:
            return self._producers[producer_id].batches[-1].last_offset
        except (KeyError, IndexError):
            return None

    def last_offsets(self) -> dict[int, int]:
        """`last_data_offset` of every producer that has one, by producer id in order."""
        return {
            producer_id: producer.batches[-1].last_offset
            for producer_id, producer in sorted(self._producers.items())
            if producer.batches
        }

    def expire(self, now_ms: int, expiration_ms: int) -> list[int]:
        """Forget, and return, the producers idle for `expiration_ms`; never amid a transaction."""
        idle = sorted(
            producer_id
            for producer_id, producer in self._producers.items()
            if now_ms - producer.timestamp >= expiration_ms
            and producer_id not in self._open_transactions
        )
        for producer_id in idle:
            del self._producers[producer_id]
        return idle

    def clear(self) -> None:
        """Forget everything, before a reload."""
        self._producers.clear()
        self._open_transactions.clear()

    # -- snapshots

    def entries(self) -> list[ProducerEntry]:
        """Every producer as a snapshot would have it, by producer id."""
        return [self._entry(*item) for item in sorted(self._producers.items())]

    def _entry(self, producer_id: int, producer: _Producer) -> ProducerEntry:
        last = producer.batches[-1] if producer.batches else None
        return ProducerEntry(
            producer_id,
            producer.epoch,
            last.last_sequence if last else NO_SEQUENCE,
            last.last_offset if last else NO_OFFSET,
            last.last_offset - last.first_offset if last else 0,
            producer.timestamp,
            producer.coordinator_epoch,
            self._open_transactions.get(producer_id, NO_OFFSET),
        )

    def snapshot(self, files: Files, path: str, *, durable: bool = True) -> None:
        """Write all to a snapshot file. One that a power cut damaged is noticed at `load`."""
        files.write_atomic(path, encode_snapshot(self.entries()), durable=durable)

    def load(self, files: Files, path: str) -> None:
        """Replace all by what a snapshot file says. After StateDamaged nothing has changed."""
        entries = decode_snapshot(read_derived(files, path), path)
        self.clear()
        for entry in entries:
            self._producers[entry.producer_id] = _restored(entry)
        in_transaction = [entry for entry in entries if entry.current_txn_first_offset >= 0]
        for entry in sorted(in_transaction, key=lambda entry: entry.current_txn_first_offset):
            self._open_transactions[entry.producer_id] = entry.current_txn_first_offset


def _refusal(producer: _Producer, batch: RecordBatch) -> KraftError | None:
    """Why this batch cannot be the producer's next one; None if it can."""
    epoch, sequence = batch.producer_epoch, batch.base_sequence
    if epoch < producer.epoch:
        return InvalidProducerEpoch(
            f"producer {batch.producer_id} sent epoch {epoch}, expected {producer.epoch} or later",
            hint="another instance has taken over; close this one",
        )
    expected = producer.next_sequence() if epoch == producer.epoch else 0
    # Markers have no sequence, nor have batches that a coordinator writes on behalf of a producer.
    if sequence in (expected, NO_SEQUENCE):
        return None
    return OutOfOrderSequence(
        f"producer {batch.producer_id} sent sequence {sequence} in epoch {epoch},"
        f" expected {expected} (last seen epoch {producer.epoch})",
        hint="a batch before this one was not written, so its order is lost: start a new producer",
    )


def _restored(entry: ProducerEntry) -> _Producer:
    producer = _Producer()
    producer.epoch = entry.epoch
    producer.coordinator_epoch = entry.coordinator_epoch
    producer.timestamp = entry.timestamp
    if entry.last_offset >= 0:
        last_sequence = entry.last_sequence
        has_sequence = last_sequence != NO_SEQUENCE
        producer.batches.append(
            _Batch(
                (last_sequence - entry.offset_delta) & SEQUENCE_MAX
                if has_sequence
                else NO_SEQUENCE,
                last_sequence,
                entry.last_offset - entry.offset_delta,
                entry.last_offset,
                entry.timestamp,
            )
        )
    return producer


def encode_snapshot(entries: list[ProducerEntry]) -> bytes:
    """The bytes of a snapshot file."""
    body = _COUNT.pack(len(entries)) + b"".join(_ENTRY.pack(*entry) for entry in entries)
    return _HEAD.pack(SNAPSHOT_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: str) -> list[ProducerEntry]:
    """The entries of a snapshot file in its own order; StateDamaged if a single bit is wrong."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise StateDamaged(path, f"has only {len(data)} bytes")
    version, crc = _HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise StateDamaged(path, f"has version {version}, not {SNAPSHOT_VERSION}")
    computed = crc32c(memoryview(data)[_HEAD.size :])
    if crc != computed:
        raise StateDamaged(path, f"has crc {crc:#010x}, computed {computed:#010x}")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    body = memoryview(data)[_HEAD.size + _COUNT.size :]
    if count * _ENTRY.size != len(body):
        raise StateDamaged(path, f"has {len(body)} bytes for {count} entries")
    entries = [ProducerEntry(*fields) for fields in _ENTRY.iter_unpack(body)]
    _check_entries(entries, path)
    return entries


def _check_entries(entries: list[ProducerEntry], path: str) -> None:
    """A good CRC over bad contents: no snapshot of ours or Kafka's, but then better none at all."""
    for entry in entries:
        if entry.producer_id < 0 or not 0 <= entry.offset_delta <= max(entry.last_offset, 0):
            raise StateDamaged(path, f"has an impossible entry: {entry}")
    if len({entry.producer_id for entry in entries}) != len(entries):
        raise StateDamaged(path, "has a producer twice")
