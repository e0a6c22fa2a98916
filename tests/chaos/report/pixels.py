"""A picture that a browser made: a PNG of eight bits for each of red, green, blue (and alpha)."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import TypeAlias

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEAD = Struct(">IIBBBBB")
_CHANNELS = {2: 3, 6: 4}

Colour: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    rows: tuple[bytes, ...]
    channels: int

    def at(self, x: int, y: int) -> Colour:
        red, green, blue = self.rows[y][x * self.channels : x * self.channels + 3]
        return red, green, blue

    def column(self, x: int) -> set[Colour]:
        return {self.at(x, y) for y in range(len(self.rows))}

    def colours(self) -> set[Colour]:
        return {self.at(x, y) for y in range(len(self.rows)) for x in range(self.width)}


def decode_png(data: bytes) -> Picture:
    assert data.startswith(SIGNATURE)
    chunks = list(_chunks(data[len(SIGNATURE) :]))
    width, height, depth, kind, _, _, interlaced = _HEAD.unpack(dict(chunks)[b"IHDR"])
    assert (depth, interlaced) == (8, 0)
    channels = _CHANNELS[kind]
    packed = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
    rows: list[bytes] = []
    above = bytes(width * channels)
    for y in range(height):
        begin = y * (width * channels + 1)
        line = packed[begin + 1 : begin + 1 + width * channels]
        above = _unfilter(packed[begin], line, above, channels)
        rows.append(above)
    return Picture(width, tuple(rows), channels)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    while data:
        length = int.from_bytes(data[:4], "big")
        yield data[4:8], data[8 : 8 + length]
        data = data[12 + length :]


def _unfilter(kind: int, line: bytes, above: bytes, channels: int) -> bytes:
    found = bytearray(line)
    for place in range(len(found)):
        left = found[place - channels] if place >= channels else 0
        corner = above[place - channels] if place >= channels else 0
        guess = (0, left, above[place], (left + above[place]) // 2, 0)[kind]
        if kind == 4:
            guess = _paeth(left, above[place], corner)
        found[place] = (found[place] + guess) & 0xFF
    return bytes(found)


def _paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    return min((left, above, corner), key=lambda each: abs(estimate - each))
