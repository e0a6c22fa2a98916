"""The offset map of one pass of compaction: for each key of the dirty part the offset of its last
record.

24 bytes a key, whatever its length: 16 of a hash under a seed drawn for this map, 8 of the offset.
All lie in one bytearray of fixed size, which is the memory bound; open addressing needs free slots,
so it is filled to a load factor at most. Two keys with one hash would lose a record: with 128 bits
and a secret seed that does not happen.
"""

import secrets

from kraftlog import _codec
from kraftlog._codec_types import SLOT_BYTES, Retained
from kraftlog.errors import ConfigError, CorruptRecord
from kraftlog.record_batch import RecordBatch
from kraftlog.types import Buffer

LOAD_FACTOR = 0.9
_SEED_BYTES = 16


class OffsetMap:
    def __init__(
        self,
        memory_bytes: int,
        *,
        keys_expected: int | None = None,
        load_factor: float = LOAD_FACTOR,
    ) -> None:
        """At most `memory_bytes`, and fewer where `keys_expected` keys need fewer: less memory is
        less to touch.
        """
        if not 0 < load_factor < 1:
            raise ConfigError(f"log.cleaner.io.buffer.load.factor={load_factor} is not in (0, 1)")
        slots = memory_bytes // SLOT_BYTES
        if keys_expected is not None:
            slots = min(slots, int(keys_expected / load_factor) + 2)
        self.capacity = int(slots * load_factor)
        if not self.capacity:
            raise ConfigError(
                f"log.cleaner.dedupe.buffer.size={memory_bytes} has no room for a single key",
                hint="give it some megabytes",
            )
        self._table = bytearray(slots * SLOT_BYTES)
        self._seed = secrets.token_bytes(_SEED_BYTES)
        self._keys = 0

    def __len__(self) -> int:
        return self._keys

    @property
    def memory_bytes(self) -> int:
        return len(self._table)

    def put(self, batch: RecordBatch, from_offset: int = 0) -> bool:
        """Note the keys of a batch, from `from_offset` on. False if not all of them fit.

        Those that did fit then stay: they lead to records that exist, so they do no harm.
        """
        try:
            added, left_out = _codec.codec.offset_map_put(
                self._table,
                self._seed,
                batch.records_data(),
                batch.count,
                base_offset=batch.base_offset,
                from_offset=from_offset,
                limit=self.capacity - self._keys,
            )
        except CorruptRecord as error:
            raise _at(batch, error) from None
        self._keys += added
        return left_out < 0

    def get(self, key: Buffer) -> int | None:
        """The last offset noted for a key."""
        offset = _codec.codec.offset_map_get(self._table, self._seed, key)
        return None if offset < 0 else offset

    def retain(self, batch: RecordBatch, *, drop_tombstones: bool) -> Retained:
        """Of a batch's records the keyed ones that no later one in the map replaces."""
        try:
            return _codec.codec.retain_records(
                self._table,
                self._seed,
                batch.records_data(),
                batch.count,
                base_offset=batch.base_offset,
                drop_tombstones=drop_tombstones,
            )
        except CorruptRecord as error:
            raise _at(batch, error) from None


def _at(batch: RecordBatch, error: CorruptRecord) -> CorruptRecord:
    return CorruptRecord(f"batch at offset {batch.base_offset}: {error}")
