"""Compression: what goes in comes out, and nothing comes out without bound."""

import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Callable

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from lz4 import frame

from kraftlog.compression import XERIAL_BLOCK_BYTES, compress, decompress
from kraftlog.errors import CorruptRecord, KraftError, UnsupportedCompression
from kraftlog.types import Compression
from tests.kraftlog.batches import every_compression

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
each_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
MB = 1 << 20

# Blocks of 32, 64 and 128 KiB have their edges here.
lengths = st.sampled_from([32, 64, 128]).flatmap(
    lambda kib: st.integers(kib * 1024 - 1, kib * 1024 + 1)
)
payloads = st.one_of(
    st.binary(max_size=200),
    st.tuples(st.binary(min_size=1, max_size=9), lengths).map(
        lambda drawn: (drawn[0] * drawn[1])[: drawn[1]]
    ),
)


@every_compression
@given(payloads, st.sampled_from([bytes, bytearray, memoryview]))
def test_what_goes_in_comes_out(
    compression: Compression, data: bytes, make: Callable[[bytes], bytes]
) -> None:
    packed = compress(compression, make(data))
    assert isinstance(packed, bytes)
    assert decompress(compression, make(packed)) == data


@each_codec
def test_repetition_gets_smaller(codec: Compression) -> None:
    assert len(compress(codec, b"again " * 1000)) < 600


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_levels(codec: Compression) -> None:
    data = b"".join(b"%d %d " % (n * n, n % 7) for n in range(3000))
    fast, small = compress(codec, data, 1), compress(codec, data, 9)
    assert small != fast
    assert decompress(codec, fast) == decompress(codec, small) == data


@every_compression
def test_the_bound_is_exact(compression: Compression) -> None:
    data = b"0123456789" * 20_000
    packed = compress(compression, data)
    assert decompress(compression, packed, len(data)) == data
    with pytest.raises(CorruptRecord, match="gives more than 199999 bytes"):
        decompress(compression, packed, len(data) - 1)


@each_codec
def test_a_bomb_costs_no_more_than_its_bound(codec: Compression) -> None:
    bomb = compress(codec, bytes(64 * MB))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecord, match="gives more than 1048576 bytes"):
            decompress(codec, bomb, MB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MB


@each_codec
@given(st.data())
def test_damage_is_noticed_or_harmless(codec: Compression, data: st.DataObject) -> None:
    """No CRC protects these bytes, so other ones may come out, but only as many as allowed."""
    packed = bytearray(compress(codec, data.draw(payloads)))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, min(len(packed), 64) - 1))
        packed[position] = data.draw(st.integers(0, 255))
    try:
        out = decompress(codec, bytes(packed), MB)
    except CorruptRecord:
        return
    assert len(out) <= MB


@each_codec
@given(st.binary(max_size=60))
def test_noise_is_refused_or_small(codec: Compression, noise: bytes) -> None:
    try:
        assert len(decompress(codec, noise, 1000)) <= 1000
    except CorruptRecord:
        return


@each_codec
def test_every_cut_is_noticed(codec: Compression) -> None:
    # Snappy's frames have no end mark: a cut between two is the records' to notice.
    data = bytes(range(256)) * 2
    packed = compress(codec, data)
    for cut in range(len(packed)):
        try:
            out = decompress(codec, packed[:cut])
        except CorruptRecord:
            continue
        assert codec is Compression.SNAPPY
        assert (cut, out) == (16, b"")


@each_codec
def test_what_follows_the_end_is_refused(codec: Compression) -> None:
    with pytest.raises(CorruptRecord):
        decompress(codec, compress(codec, b"data" * 9) + b"x")


def test_members_and_frames_in_a_row_are_one() -> None:
    """Gzip and zstd allow it, and some writers do it."""
    assert decompress(Compression.GZIP, gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"
    pack = zstandard.ZstdCompressor(write_checksum=True).compress
    assert decompress(Compression.ZSTD, pack(b"a") + pack(b"") + pack(b"b")) == b"ab"
    with pytest.raises(CorruptRecord, match="more than 1 bytes"):
        decompress(Compression.ZSTD, pack(b"a") + pack(b"b"), 1)


def test_gzip_is_not_zlib() -> None:
    with pytest.raises(CorruptRecord, match=r"gzip data is damaged: .*header"):
        decompress(Compression.GZIP, zlib.compress(b"data"))


def test_snappy_as_librdkafka_writes_it() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"one block, no frame"))
    assert decompress(Compression.SNAPPY, raw) == b"one block, no frame"


def test_snappy_frames_as_xerial_writes_them() -> None:
    packed = compress(Compression.SNAPPY, bytes(XERIAL_BLOCK_BYTES + 1))
    assert packed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    first = struct.unpack_from(">i", packed, 16)[0]
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == XERIAL_BLOCK_BYTES
    second = struct.unpack_from(">i", packed, 20 + first)[0]
    assert 24 + first + second == len(packed)


def test_snappy_versions_are_overlooked() -> None:
    """Redpanda writes them with their bytes swapped."""
    packed = bytearray(compress(Compression.SNAPPY, b"data"))
    packed[8:16] = struct.pack("<ii", 1, 1)
    assert decompress(Compression.SNAPPY, packed) == b"data"


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 9, 2**31 - 1])
def test_snappy_chunk_lengths(length: int) -> None:
    packed = bytearray(compress(Compression.SNAPPY, b"data"))
    struct.pack_into(">i", packed, 16, length)
    with pytest.raises(CorruptRecord, match="snappy data is damaged"):
        decompress(Compression.SNAPPY, packed)


def test_a_length_that_snappy_claims_is_not_believed() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"\0a"
    with pytest.raises(CorruptRecord, match="snappy data gives more than"):
        decompress(Compression.SNAPPY, claim)


def test_a_size_that_zstd_claims_is_not_believed() -> None:
    """A frame of one empty block that claims 2^40 bytes."""
    claim = b"\x28\xb5\x2f\xfd" + b"\xe0" + struct.pack("<Q", 2**40) + b"\x01\0\0"
    with pytest.raises(CorruptRecord, match=f"claims {2**40} bytes and can give 0"):
        decompress(Compression.ZSTD, claim)


def test_a_skippable_frame_of_zstd_is_not_data() -> None:
    for length in (0, 3, 2**32 - 1):
        skipped = b"\x50\x2a\x4d\x18" + struct.pack("<I", length) + b"\x01\0\0"
        with pytest.raises(CorruptRecord, match="zstd data is damaged"):
            decompress(Compression.ZSTD, skipped)


def test_lz4_as_other_writers_make_it() -> None:
    """With linked blocks, checksums and a content size."""
    data = b"some data, " * 20_000
    packed = frame.compress(data, block_linked=True, content_checksum=True, block_checksum=True)
    assert decompress(Compression.LZ4, packed) == data


def test_lz4_blocks_are_independent_and_of_64_kib() -> None:
    """Kafka's own reader knows nothing else."""
    info = frame.get_frame_info(compress(Compression.LZ4, bytes(300_000)))
    assert info["block_linked"] is False
    assert info["block_size"] == 64 * 1024
    assert info["content_size"] == 0


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_an_unknown_codec(codec: int) -> None:
    calls: list[Callable[[int, bytes], bytes]] = [compress, decompress]
    for call in calls:
        with pytest.raises(UnsupportedCompression, match="known are 0 none, 1 gzip") as caught:
            call(codec, b"")
        assert isinstance(caught.value, KraftError)
