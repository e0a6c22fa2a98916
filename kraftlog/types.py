"""Words that every package shares."""

import base64
import binascii
import secrets
from dataclasses import dataclass
from enum import IntEnum

Buffer = bytes | bytearray | memoryview

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_EPOCH = -1

UUID_BYTES = 16
UUID_TEXT_CHARS = 22


class Compression(IntEnum):
    """Kafka's codec numbers, the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    CREATE = 0
    APPEND = 1


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Where an epoch ends in a log: `end_offset` is the first offset that does not belong to it."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True, order=True)
class Uuid:
    """Sixteen bytes; as text Kafka's 22 characters of URL-safe base64 without padding."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != UUID_BYTES:
            raise ValueError(f"a uuid has {UUID_BYTES} bytes, not {len(self.raw)}")

    def __hash__(self) -> int:
        return hash(self.raw)  # ids are keys of large maps: no tuple is made for it

    @classmethod
    def random(cls) -> "Uuid":
        """A fresh one whose text never starts with '-', which a command would take for a flag."""
        while True:
            uuid = cls(secrets.token_bytes(UUID_BYTES))
            if not str(uuid).startswith("-"):
                return uuid

    @classmethod
    def parse(cls, text: str) -> "Uuid":
        """The uuid of a text, or ValueError, also where it only nearly encodes 16 bytes."""
        try:
            raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"{text!r} is not a uuid: {error}") from None
        if len(text) != UUID_TEXT_CHARS or len(raw) != UUID_BYTES or str(cls(raw)) != text:
            raise ValueError(f"{text!r} is not a uuid of {UUID_TEXT_CHARS} base64url characters")
        return cls(raw)

    @classmethod
    def shown(cls, raw: bytes) -> str:
        """Bytes that somebody sent in the place of one."""
        return str(cls(raw)) if len(raw) == UUID_BYTES else raw.hex() or "none"

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self.raw).rstrip(b"=").decode()
