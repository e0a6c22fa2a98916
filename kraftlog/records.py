"""What a producer sends and what a consumer gets."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar

from kraftlog.errors import InvalidRecord
from kraftlog.types import Buffer, TopicPartition

K = TypeVar("K")
V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]
HeadersLike = Iterable[tuple[str, Buffer | str | None]] | Mapping[str, Buffer | str | None]
Timestamp = datetime | int

INT64_MAX = 2**63 - 1


class Record(NamedTuple, Generic[K, V]):
    """A record to send: what `Producer.send_many` takes. A timestamp is in milliseconds."""

    value: V | None = None
    key: K | None = None
    headers: HeadersLike = ()
    partition: int | None = None
    timestamp: Timestamp | None = None


class ConsumerRecord(NamedTuple, Generic[K, V]):
    """A record as it was read. The timestamp is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: K | None
    value: V | None
    headers: Headers = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)


class RecordMetadata(NamedTuple):
    """Where a record went. The offset is -1 where nobody told: acks=0, or an old duplicate."""

    topic: str
    partition: int
    offset: int
    timestamp: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def to_headers(headers: HeadersLike) -> Headers:
    """Pairs of str and bytes. Text becomes UTF-8; a name may come more than once."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((_header_name(name), _header_value(name, value)) for name, value in pairs)


def _header_name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidRecord(f"header name {name!r} is no str")
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise InvalidRecord(f"header name {name!r} is no text: {error}") from None
    return name


def _header_value(name: str, value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise InvalidRecord(f"header {name!r} is a {type(value).__name__}, not bytes or str")


def to_timestamp_ms(timestamp: Timestamp) -> int:
    """Milliseconds since 1970. A datetime needs a time zone: without one it means nothing."""
    if isinstance(timestamp, datetime):
        if timestamp.tzinfo is None:
            raise InvalidRecord(
                f"timestamp {timestamp} has no time zone", hint="use datetime.now(timezone.utc)"
            )
        return round(timestamp.timestamp() * 1000)
    if isinstance(timestamp, bool) or not isinstance(timestamp, int):
        raise InvalidRecord(f"timestamp {timestamp!r} is neither a datetime nor milliseconds")
    if not 0 <= timestamp <= INT64_MAX:
        raise InvalidRecord(f"timestamp {timestamp} is before 1970 or past 2^63 ms")
    return timestamp


class PartitionInfo(NamedTuple):
    """A partition as the cluster's metadata has it. A leader of -1 is none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
