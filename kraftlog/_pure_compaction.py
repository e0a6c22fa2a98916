"""The offset map of compaction and what it keeps, in pure Python.

The map is a caller's bytearray of 24-byte slots with open addressing: a hash of the key under the
caller's random seed, then the offset + 1. It belongs to one pass of one process: the native twin
hashes differently.
"""

import hashlib
import struct

from kraftlog._codec_types import INT32_MAX, INT64_MAX, SLOT_BYTES, Retained
from kraftlog._pure_records import check_offsets, spans
from kraftlog.types import Buffer

SEED_BYTES = 16
HASH_BYTES = 16
_OFFSET = struct.Struct("<Q")


def _slots(table: bytearray, seed: bytes) -> int:
    if len(seed) != SEED_BYTES:
        raise ValueError(f"the seed has {len(seed)} bytes, not {SEED_BYTES}")
    if not table or len(table) % SLOT_BYTES:
        raise ValueError(f"the table has {len(table)} bytes, not a multiple of {SLOT_BYTES}")
    return len(table) // SLOT_BYTES


def _find(table: bytearray, digest: bytes) -> tuple[int, int]:
    """The slot of a key and the offset in it; an offset of -1 is a free slot, a slot of -1 none."""
    slots = len(table) // SLOT_BYTES
    slot = int.from_bytes(digest[:8], "little") % slots
    for _ in range(slots):
        position = slot * SLOT_BYTES
        (stored,) = _OFFSET.unpack_from(table, position + HASH_BYTES)
        if stored == 0 or table[position : position + HASH_BYTES] == digest:
            return position, int(stored) - 1
        slot = slot + 1 if slot + 1 < slots else 0
    return -1, -1


def _last_delta(base_offset: int) -> int:
    check_offsets(base_offset, 0)
    return min(INT32_MAX, INT64_MAX - 1 - base_offset)


def _digest(seed: bytes, key: Buffer) -> bytes:
    return hashlib.blake2b(key, digest_size=HASH_BYTES, key=seed).digest()


def offset_map_put(
    table: bytearray,
    seed: bytes,
    data: Buffer,
    count: int,
    *,
    base_offset: int,
    from_offset: int,
    limit: int,
) -> tuple[int, int]:
    """Note the last offset of each key of a section, from `from_offset` on.

    Returns how many keys were new, and the offset of the first record that was left out because
    it would have been more than `limit` new ones or the table was full, or -1. The section is
    checked to its end in any case; one that fails leaves the table as it happens to be.
    """
    _slots(table, seed)
    data = bytes(data)
    added, stopped = 0, -1
    last_delta = _last_delta(base_offset)
    for _, _, _, offset_delta, key, key_end, *_ in spans(data, count, last_offset_delta=last_delta):
        offset = base_offset + offset_delta
        if stopped >= 0 or offset < from_offset or key_end < 0:
            continue
        digest = _digest(seed, data[key:key_end])
        position, known = _find(table, digest)
        if position < 0 or (known < 0 and added >= limit):
            stopped = offset
            continue
        added += known < 0
        table[position : position + HASH_BYTES] = digest
        _OFFSET.pack_into(table, position + HASH_BYTES, max(known, offset) + 1)
    return added, stopped


def offset_map_get(table: bytearray, seed: bytes, key: Buffer) -> int:
    """The last offset noted for a key, or -1."""
    _slots(table, seed)
    return _find(table, _digest(seed, key))[1]


def retain_records(
    table: bytearray,
    seed: bytes,
    data: Buffer,
    count: int,
    *,
    base_offset: int,
    drop_tombstones: bool,
) -> Retained:
    """What compaction keeps of a section, copied as it stands.

    A record goes when it has no key, when the map knows a later one of its key, or when it is a
    tombstone (a null value) and those are to be dropped.
    """
    _slots(table, seed)
    data = bytes(data)
    kept: list[bytes] = []
    max_timestamp_delta, last_offset_delta, tombstones = 0, -1, 0
    for start, end, timestamp_delta, offset_delta, key, key_end, _, value_end, _ in spans(
        data, count, last_offset_delta=_last_delta(base_offset)
    ):
        is_tombstone = value_end < 0
        if key_end < 0 or (is_tombstone and drop_tombstones):
            continue
        if _find(table, _digest(seed, data[key:key_end]))[1] > base_offset + offset_delta:
            continue
        first = not kept
        max_timestamp_delta = (
            timestamp_delta if first else max(max_timestamp_delta, timestamp_delta)
        )
        kept.append(data[start:end])
        last_offset_delta = offset_delta
        tombstones += is_tombstone
    return Retained(b"".join(kept), len(kept), max_timestamp_delta, last_offset_delta, tombstones)
