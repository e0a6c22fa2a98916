"""The limit for a source and a sink of Spark in Python: Arrow batches out of memory, and into
nothing. What a connector adds to this is its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

BATCH_ROWS = 10_000
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp,"
    " timestampType int"
)


@dataclass
class Part(InputPartition):
    number: int
    rows: int


class ArrowSource(DataSource):
    """Options: rows, of all partitions; valuebytes; partitions."""

    @classmethod
    def name(cls) -> str:
        return "arrow_memory"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> "ArrowReader":  # noqa: ARG002 - Spark's interface
        return ArrowReader(
            int(self.options["rows"]),
            int(self.options["valuebytes"]),
            int(self.options["partitions"]),
        )

    def writer(self, schema: StructType, overwrite: bool) -> "ArrowDrain":  # noqa: ARG002
        return ArrowDrain()


class ArrowReader(DataSourceReader):
    def __init__(self, rows: int, value_bytes: int, partitions: int) -> None:
        self.rows = rows
        self.value_bytes = value_bytes
        self.count = partitions

    def partitions(self) -> list[InputPartition]:
        return [Part(number, self.rows // self.count) for number in range(self.count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Part):
            raise TypeError(f"{partition!r} is not one of ours")
        batch = self._batch(partition.number)
        for start in range(0, partition.rows, BATCH_ROWS):
            yield batch.slice(0, min(BATCH_ROWS, partition.rows - start))

    def _batch(self, partition: int) -> pa.RecordBatch:
        """The same one over and over."""
        rows = BATCH_ROWS
        return pa.RecordBatch.from_arrays(
            [
                pa.nulls(rows, pa.binary()),
                pa.array([b"v" * self.value_bytes] * rows, pa.binary()),
                pa.array(["topic"] * rows, pa.string()),
                pa.array([partition] * rows, pa.int32()),
                pa.array(range(rows), pa.int64()),
                pa.array([0] * rows, pa.timestamp("us", tz="UTC")),
                pa.array([0] * rows, pa.int32()),
            ],
            names=[column.split()[0] for column in SCHEMA.split(", ")],
        )


@dataclass
class Drained(WriterCommitMessage):
    rows: int


class ArrowDrain(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Drained:
        return Drained(sum(batch.num_rows for batch in iterator))
