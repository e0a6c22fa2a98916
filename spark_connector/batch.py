"""A batch read: what there is between two offsets of each partition, one task per range.

Spark asks for the partitions once per `load()`, so that all actions on one DataFrame see the same
records.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kraftlog.errors import ConfigError
from spark_connector.offsets import Range
from spark_connector.options import SourceOptions
from spark_connector.plan import Planner
from spark_connector.rows import read_range
from spark_connector.travel import Travels

if TYPE_CHECKING:
    import pyarrow as pa


class RangePartition(InputPartition):
    """One task: a range of offsets of one partition."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class BatchReader(Travels, DataSourceReader):
    """Has no pushFilters: Spark gives wrong results with it if a DataFrame is used twice."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        planner = Planner(self._options)
        places = planner.partitions()
        ids = planner.topic_ids(places)
        starts, ends = planner.starts(places), planner.ends(places)
        ranges = [
            Range(place, starts[place], ends[place], ids.get(place.topic, b"")) for place in places
        ]
        for each in ranges:
            if each.size < 0:
                raise ConfigError(
                    f"{each.place} would be read from {each.start} up to {each.end}",
                    hint="let the starting offsets lie before the ending ones",
                )
        return [RangePartition(each) for each in planner.split(ranges)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        # Where there is nothing to read, Spark makes up a partition of its own.
        if isinstance(partition, RangePartition):
            yield from read_range(self._options, partition.wanted, self._columns)
