"""The operations of a history as what they mean: sends, polls, changes and reads of metadata.

| op | asked | answered |
|---|---|---|
| send, probe | topic, partition, value | offset (none or -1: not told) |
| poll | topic, partition | topic, partition, records: [[offset, value], ...] |
| assign, seek, subscribe | anything | anything: the next poll may begin anywhere |
| create_topic, delete_topic | topic | offset |
| describe_topics, list_topics | topics: those asked for, or none for all | offset, topics |

An `offset` of metadata is the end of the log that the change needed, or that the read has seen: a
read shows every change whose offset is not above its own. A process is one client: one producer,
whose sends keep their order, or one consumer. `topics` answers are names, or objects under them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeGuard

from chaos.checkers.findings import Value
from chaos.history import History, HistoryDamaged, Json, Operation, Outcome
from kraftlog.types import TopicPartition

SENDS = ("send", "probe")
POLL = "poll"
MOVES = ("assign", "seek", "subscribe")
CREATE = "create_topic"
DELETE = "delete_topic"
TOPIC_READS = ("describe_topics", "list_topics")


@dataclass(frozen=True, slots=True)
class Send:
    operation: Operation
    key: TopicPartition
    value: Value
    offset: int | None
    """Where it was said to be; None if nobody said."""

    @property
    def is_acked(self) -> bool:
        return self.operation.outcome is Outcome.OK


@dataclass(frozen=True, slots=True)
class Poll:
    operation: Operation
    key: TopicPartition
    records: tuple[tuple[int, Value], ...]


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic that is created, or deleted."""

    operation: Operation
    topic: str
    creates: bool
    offset: int | None


@dataclass(frozen=True, slots=True)
class TopicRead:
    operation: Operation
    asked: frozenset[str] | None
    """None: all of them."""
    found: frozenset[str]
    offset: int | None


def sends(history: History) -> Iterator[Send]:
    for operation in history.of(*SENDS):
        asked = operation.value
        if isinstance(asked, Mapping) and "value" in asked:
            key, value = _key(operation, asked), _value(operation, asked["value"])
            yield Send(operation, key, value, _offset(operation))


def polls(history: History) -> Iterator[Poll | Operation]:
    """Polls that ended well, in order; between them the operations that move a consumer."""
    for operation in history.of(POLL, *MOVES):
        if operation.op != POLL:
            yield operation
        elif operation.outcome is Outcome.OK:
            yield _poll(operation)


def _poll(operation: Operation) -> Poll:
    result = operation.result
    if not isinstance(result, Mapping):
        _odd(operation, "its result is no object")
    records = result.get("records")
    if not _is_list(records):
        _odd(operation, "records is no list")
    found = tuple(_record(operation, each) for each in records)
    return Poll(operation, _key(operation, result), found)


def _record(operation: Operation, record: Json) -> tuple[int, Value]:
    if not _is_list(record) or len(record) != 2:
        _odd(operation, f"{record!r} is not [offset, value]")
    offset, value = record
    if not _is_int(offset) or offset < 0:
        _odd(operation, f"{offset!r} is no offset")
    return offset, _value(operation, value)


def topic_changes(history: History) -> Iterator[TopicChange]:
    for operation in history.of(CREATE, DELETE):
        asked = operation.value
        topic = asked.get("topic") if isinstance(asked, Mapping) else None
        if not isinstance(topic, str):
            _odd(operation, "it names no topic")
        yield TopicChange(operation, topic, operation.op == CREATE, _offset(operation))


def topic_reads(history: History) -> Iterator[TopicRead]:
    """Those that ended well: the others showed nothing."""
    for operation in history.of(*TOPIC_READS):
        result, asked = operation.result, operation.value
        if operation.outcome is not Outcome.OK or not isinstance(result, Mapping):
            continue
        wanted = asked.get("topics") if isinstance(asked, Mapping) else None
        yield TopicRead(
            operation,
            None if wanted is None else _names(operation, wanted),
            _names(operation, result.get("topics", ())),
            _offset(operation),
        )


# -- fields


def _key(operation: Operation, fields: Mapping[str, Json]) -> TopicPartition:
    topic, partition = fields.get("topic"), fields.get("partition")
    if not isinstance(topic, str) or not _is_int(partition):
        _odd(operation, f"topic {topic!r}, partition {partition!r}")
    return TopicPartition(topic, partition)


def _value(operation: Operation, value: Json) -> Value:
    if isinstance(value, bool) or not isinstance(value, str | int):
        _odd(operation, f"value {value!r} is neither text nor a number")
    return value


def _offset(operation: Operation) -> int | None:
    result = operation.result
    offset = result.get("offset") if isinstance(result, Mapping) else None
    if offset is not None and not _is_int(offset):
        _odd(operation, f"{offset!r} is no offset")
    return None if offset is None or offset < 0 else offset


def _names(operation: Operation, names: Json) -> frozenset[str]:
    if isinstance(names, Mapping):
        return frozenset(names)
    if not _is_list(names) or not all(isinstance(each, str) for each in names):
        _odd(operation, f"topics {names!r} are no names")
    return frozenset(str(each) for each in names)


def _odd(operation: Operation, why: str) -> NoReturn:
    raise HistoryDamaged(
        f"operation {operation.id} makes no sense: {why}: {operation}",
        hint="chaos/checkers/operations.py says what each operation holds",
    )


def _is_int(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: Json) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)
