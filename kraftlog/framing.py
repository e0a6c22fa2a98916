"""Messages made of envelopes, and envelopes in pieces: what is large is copied once.

A stream message is a protobuf message whose only field, number 1, is a list of envelopes. Envelopes
are encoded one by one and joined here: that is what protobuf itself would write, and it tells the
size of each without encoding it twice. Records inside an envelope do not pass through protobuf
either, which would copy them at each level of nesting: what is around them is encoded without
them, and all of it is joined once.
"""

from collections import deque
from collections.abc import Sequence

from kraftlog.types import Buffer

MESSAGE_BYTES_WANTED = 1 << 20
"""A message that has so much takes nothing more in."""
_LENGTH_DELIMITED = 2
_ELEMENT = bytes([1 << 3 | _LENGTH_DELIMITED])

Pieces = tuple[Buffer, ...]
"""An encoded message, to be joined."""
Envelope = bytes | Pieces
"""An encoded one, whole or in pieces."""


def field_head(field_number: int, size: int) -> bytes:
    """What stands before the bytes of a field that has so many of them."""
    return _varint(field_number << 3 | _LENGTH_DELIMITED) + _varint(size)


def enclose(field_number: int, pieces: Sequence[Buffer]) -> Pieces:
    """An encoded message as the field of a larger one, ready to be joined with its other fields."""
    return field_head(field_number, sum(map(len, pieces))), *pieces


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def frame(envelope: Envelope) -> bytes:
    """An envelope as an element of the list that a stream message is."""
    pieces = envelope if isinstance(envelope, tuple) else (envelope,)
    return b"".join((_ELEMENT, _varint(sum(map(len, pieces))), *pieces))


def take_message(frames: deque[bytes]) -> bytes:
    """The next message: as many frames as fit, at least one."""
    taken = [frames.popleft()]
    room = MESSAGE_BYTES_WANTED - len(taken[0])
    while frames and len(frames[0]) <= room:
        taken.append(frames.popleft())
        room -= len(taken[-1])
    return b"".join(taken)
