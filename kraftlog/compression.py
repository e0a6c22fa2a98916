"""The four compressions of Kafka's record batches, each with a bound on what comes out.

A few bytes can stand for gigabytes, so nothing is decompressed beyond `max_bytes`, and a length
that the data itself claims is compared with it before anything is allocated. The libraries are
imported when first used: most processes never need more than one.
"""

import struct
import zlib

from kraftlog.errors import CorruptRecord, UnsupportedCompression
from kraftlog.types import Buffer, Compression

DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024

GZIP_LEVEL = 6
ZSTD_LEVEL = 3
_GZIP_WBITS = 31

XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_CHUNK_LENGTH = struct.Struct(">i")

_LZ4_STEP_BYTES = 64 * 1024

_ZSTD_BLOCK_BYTES_MAX = 128 * 1024
_ZSTD_BLOCK_HEADER_BYTES = 3
_ZSTD_CHECKSUM_BYTES = 4
_ZSTD_RLE_BLOCK = 1
_ZSTD_COMPRESSED_BLOCK = 2
_ZSTD_RESERVED_BLOCK = 3


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the form in which Kafka's clients write it. Snappy has no levels."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return _gzip_compress(data, level)
        case Compression.SNAPPY:
            return _snappy_compress(data)
        case Compression.LZ4:
            return _lz4_compress(data, level)
        case Compression.ZSTD:
            return _zstd_compress(data, level)
        case _:
            raise _unknown(codec)


def decompress(codec: int, data: Buffer, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """What `compress` was given, if that is at most `max_bytes`; CorruptRecord otherwise."""
    match codec:
        case Compression.NONE:
            if len(data) > max_bytes:
                raise _too_long("uncompressed", max_bytes)
            return bytes(data)
        case Compression.GZIP:
            return _gzip_decompress(data, max_bytes)
        case Compression.SNAPPY:
            return _snappy_decompress(memoryview(data), max_bytes)
        case Compression.LZ4:
            return _lz4_decompress(data, max_bytes)
        case Compression.ZSTD:
            return _zstd_decompress(memoryview(data), max_bytes)
        case _:
            raise _unknown(codec)


def _unknown(codec: int) -> UnsupportedCompression:
    known = ", ".join(f"{known.value} {known.name.lower()}" for known in Compression)
    return UnsupportedCompression(f"unknown compression {codec}", hint=f"known are {known}")


def _too_long(name: str, max_bytes: int) -> CorruptRecord:
    return CorruptRecord(f"{name} data gives more than {max_bytes} bytes")


def _damaged(name: str, why: object) -> CorruptRecord:
    return CorruptRecord(f"{name} data is damaged: {why}")


def _gzip_compress(data: Buffer, level: int | None) -> bytes:
    compressor = zlib.compressobj(GZIP_LEVEL if level is None else level, wbits=_GZIP_WBITS)
    return compressor.compress(data) + compressor.flush()


def _gzip_decompress(data: Buffer, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = max_bytes
    rest: Buffer = data
    while True:  # Every member takes at least 18 bytes of `rest`.
        member = zlib.decompressobj(wbits=_GZIP_WBITS)
        try:
            part = member.decompress(rest, left + 1)
        except zlib.error as error:
            raise _damaged("gzip", error) from None
        left -= len(part)
        if left < 0:
            raise _too_long("gzip", max_bytes)
        if not member.eof:
            raise _damaged("gzip", "it ends too early")
        parts.append(part)
        rest = member.unused_data
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_compress(data: Buffer) -> bytes:
    """In the framing of the xerial library, which Kafka's Java client uses."""
    from cramjam import snappy  # noqa: PLC0415

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        chunk = bytes(snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (_CHUNK_LENGTH.pack(len(chunk)), chunk)
    return b"".join(parts)


def _snappy_decompress(data: memoryview, max_bytes: int) -> bytes:
    """Xerial framing, or one raw block as librdkafka writes it."""
    framed = data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC
    chunks = _xerial_chunks(data) if framed else [data]
    lengths = [_snappy_length(chunk) for chunk in chunks]
    if sum(lengths) > max_bytes:
        raise _too_long("snappy", max_bytes)
    if len(chunks) == 1:
        return _snappy_chunk(chunks[0], lengths[0])
    return b"".join(map(_snappy_chunk, chunks, lengths))


def _xerial_chunks(data: memoryview) -> list[memoryview]:
    """The chunks of a framed stream. Version numbers are ignored: some writers swap their bytes."""
    if len(data) < len(_XERIAL_HEADER):
        raise _damaged("snappy", "its header is cut off")
    chunks: list[memoryview] = []
    position = len(_XERIAL_HEADER)
    while position < len(data):
        start = position + _CHUNK_LENGTH.size
        if start > len(data):
            raise _damaged("snappy", f"chunk length at byte {position} is cut off")
        (length,) = _CHUNK_LENGTH.unpack_from(data, position)
        if length <= 0 or length > len(data) - start:
            raise _damaged("snappy", f"chunk length {length} at byte {position}")
        position = start + length
        chunks.append(data[start:position])
    return chunks


def _snappy_length(chunk: memoryview) -> int:
    from cramjam import DecompressionError, snappy  # noqa: PLC0415

    try:
        return int(snappy.decompress_raw_len(chunk))
    except DecompressionError as error:
        raise _damaged("snappy", error) from None


def _snappy_chunk(chunk: memoryview, length: int) -> bytes:
    from cramjam import DecompressionError, snappy  # noqa: PLC0415

    try:
        out = bytes(snappy.decompress_raw(chunk))
    except DecompressionError as error:
        raise _damaged("snappy", error) from None
    if len(out) != length:
        raise _damaged("snappy", f"{len(out)} bytes where {length} were announced")
    return out


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    """As Kafka's own writer: independent blocks of 64 KiB and no content size."""
    from lz4 import frame  # noqa: PLC0415

    compressed: bytes = frame.compress(
        data,
        compression_level=frame.COMPRESSIONLEVEL_MIN if level is None else level,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _lz4_decompress(data: Buffer, max_bytes: int) -> bytes:
    from lz4.frame import LZ4FrameDecompressor  # noqa: PLC0415

    decompressor = LZ4FrameDecompressor()
    parts: list[bytes] = []
    left, rest = max_bytes, data
    # The library allocates the most that it may give, so it may give more only as more came out.
    step = max(_LZ4_STEP_BYTES, 4 * len(data))
    while not decompressor.eof:
        try:
            part: bytes = decompressor.decompress(rest, min(step, left + 1))
        except RuntimeError as error:
            raise _damaged("lz4", error) from None
        left -= len(part)
        if left < 0:
            raise _too_long("lz4", max_bytes)
        if not part and not decompressor.eof:
            raise _damaged("lz4", "it ends too early")
        parts.append(part)
        rest, step = b"", 2 * step
    if decompressor.unused_data:
        raise _damaged("lz4", f"{len(decompressor.unused_data)} bytes after its end")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    from zstandard import ZstdCompressor  # noqa: PLC0415

    return ZstdCompressor(level=ZSTD_LEVEL if level is None else level).compress(data)


def _zstd_decompress(data: memoryview, max_bytes: int) -> bytes:
    from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415

    decompressor = ZstdDecompressor()
    parts: list[bytes] = []
    position, left = 0, max_bytes
    while True:  # Every frame takes at least 5 bytes of `data`.
        try:
            end, bound, claim = _zstd_frame(data, position)
            if claim > left:
                raise _too_long("zstd", max_bytes)
            # One byte more than is left, so that what is too long is told from what is damaged.
            limit = max(1, min(bound, left + 1))
            part = decompressor.decompress(data[position:end], max_output_size=limit)
        except ZstdError as error:
            raise _damaged("zstd", error) from None
        left -= len(part)
        if left < 0:
            raise _too_long("zstd", max_bytes)
        parts.append(part)
        position = end
        if position == len(data):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _zstd_frame(data: memoryview, start: int) -> tuple[int, int, int]:
    """Where the frame at `start` ends, a bound on what its blocks give, and what it claims to give.

    The library overlooks bytes after a frame, and allocates whatever a frame claims: hence this.
    """
    import zstandard  # noqa: PLC0415

    frame = zstandard.get_frame_parameters(data[start:])
    position = start + zstandard.frame_header_size(data[start:])
    bound, is_last = 0, False
    while not is_last:
        header = data[position : position + _ZSTD_BLOCK_HEADER_BYTES]
        if len(header) < _ZSTD_BLOCK_HEADER_BYTES:
            raise _damaged("zstd", "it ends too early")
        fields = int.from_bytes(header, "little")
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        if size > _ZSTD_BLOCK_BYTES_MAX or kind == _ZSTD_RESERVED_BLOCK:
            raise _damaged("zstd", f"block header {fields:#x} at byte {position}")
        position += _ZSTD_BLOCK_HEADER_BYTES + (1 if kind == _ZSTD_RLE_BLOCK else size)
        bound += _ZSTD_BLOCK_BYTES_MAX if kind == _ZSTD_COMPRESSED_BLOCK else size
    position += _ZSTD_CHECKSUM_BYTES if frame.has_checksum else 0
    if position > len(data):
        raise _damaged("zstd", "it ends too early")
    claim = 0 if frame.content_size == zstandard.CONTENTSIZE_UNKNOWN else frame.content_size
    if claim > bound:
        raise _damaged("zstd", f"it claims {claim} bytes and can give {bound}")
    return position, bound, claim
