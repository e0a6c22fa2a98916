"""The columns of the source: those of Spark's Kafka source, or those that the user names of them.

A reader cannot be told which columns a query needs, so naming them with `.schema(...)` is how the
others are left out.
"""

import difflib
from functools import lru_cache

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kraftlog.errors import ConfigError
from kraftlog.types import TimestampType as RecordTime
from kraftlog.types import TopicPartition

HEADERS = "headers"

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: ArrayType(_HEADER),
}

_ARROW_TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    HEADERS: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}

CREATE_TIME, APPEND_TIME = 0, 1
"""Kafka's numbers of the timestamp types."""


def source_schema(*, include_headers: bool) -> StructType:
    names = [name for name in COLUMNS if include_headers or name != HEADERS]
    return StructType([StructField(name, COLUMNS[name]) for name in names])


def check_columns(schema: StructType) -> tuple[str, ...]:
    """The names of the columns that are wanted, in their order."""
    for field in schema.fields:
        known = COLUMNS.get(field.name)
        if known is None:
            close = difflib.get_close_matches(field.name, COLUMNS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(COLUMNS)}"
            raise ConfigError(f"the source has no column {field.name!r}", hint=hint)
        if not _same(field.dataType, known):
            raise ConfigError(
                f"column {field.name} is {field.dataType.simpleString()} in the schema",
                hint=f"make it {known.simpleString()}, and cast it in the query",
            )
    names = tuple(schema.fieldNames())
    if len(set(names)) < len(names) or not names:
        raise ConfigError(f"columns {', '.join(names) or 'none'}", hint="name each once")
    return names


def _same(wanted: DataType, known: DataType) -> bool:
    """Whether they are the same type; what may be null plays no part."""
    return wanted.simpleString() == known.simpleString()


def check_rows(schema: StructType, *, has_topic: bool) -> None:
    """That the rows of a sink have what a record needs, in types that it can have."""
    kinds = {field.name: field.dataType for field in schema.fields}
    if "value" not in kinds:
        raise ConfigError(
            f"no column value among {', '.join(kinds) or 'none'}",
            hint="select what to write as value, a string or binary: to_json(struct(...)), say",
        )
    if "topic" not in kinds and not has_topic:
        raise ConfigError("no topic", hint="name it with the option topic, or add a column topic")
    text = ("string", "binary")
    allowed = {
        "key": text,
        "value": text,
        "topic": ("string",),
        "partition": ("int",),
        HEADERS: (COLUMNS[HEADERS].simpleString(),),
    }
    for name, types in allowed.items():
        if name in kinds and kinds[name].simpleString() not in types:
            raise ConfigError(
                f"column {name} is {kinds[name].simpleString()}",
                hint=f"cast it to {' or '.join(types)}",
            )


def project(
    records: "pa.RecordBatch", columns: tuple[str, ...], place: TopicPartition, kind: RecordTime
) -> "pa.RecordBatch":
    """What was decoded, as the columns that are wanted."""
    rows: int = records.num_rows
    made = {
        "topic": lambda: _repeated(place.topic, "topic", rows),
        "partition": lambda: _repeated(place.partition, "partition", rows),
        "timestampType": lambda: _repeated(
            APPEND_TIME if kind is RecordTime.APPEND else CREATE_TIME, "timestampType", rows
        ),
        HEADERS: lambda: _null_where_empty(records.column(HEADERS)),
    }
    arrays = [made[name]() if name in made else records.column(name) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


@lru_cache(maxsize=16)
def arrow_schema(columns: tuple[str, ...]) -> "pa.Schema":
    """What Spark expects: it compares the first batch with it."""
    return pa.schema([(name, _ARROW_TYPES[name]) for name in columns])


@lru_cache(maxsize=16)
def _repeated(value: str | int, column: str, rows: int) -> "pa.Array":
    return pa.repeat(pa.scalar(value, _ARROW_TYPES[column]), rows)


def _null_where_empty(headers: "pa.ListArray") -> "pa.ListArray":
    """Kafka's source has null for a record without headers."""
    from pyarrow import compute  # noqa: PLC0415 - slow to load, and headers are seldom wanted

    is_empty = compute.equal(headers.value_lengths(), 0)
    if not compute.any(is_empty).as_py():
        return headers
    # Where the first offset of a list is null, the list is.
    firsts = compute.if_else(is_empty, pa.scalar(None, pa.int32()), headers.offsets[:-1])
    offsets = pa.concat_arrays([firsts, headers.offsets[-1:]])
    return pa.ListArray.from_arrays(offsets, headers.values)
