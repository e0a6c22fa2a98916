"""The data source "kraftlog": what Spark makes of `format("kraftlog")`."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from kraftlog.errors import ConfigError
from spark_connector.batch import BatchReader
from spark_connector.options import includes_headers, sink_options, source_options
from spark_connector.schema import check_columns, check_rows, source_schema
from spark_connector.sink import BatchWriter, StreamWriter
from spark_connector.stream import StreamReader
from spark_connector.travel import Travels

NAME = "kraftlog"


class KraftlogSource(Travels, DataSource):
    """Reads and writes topics; columns and options are those of Spark's own "kafka"."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return source_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(source_options(self.options, streaming=False), check_columns(schema))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        return StreamReader(source_options(self.options, streaming=True), check_columns(schema))

    # Spark calls both by the names of their parameters.

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        _check_append(overwrite=overwrite)
        options = sink_options(self.options)
        check_rows(schema, has_topic=options.topic is not None)
        return BatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        _check_append(overwrite=overwrite)
        options = sink_options(self.options)
        check_rows(schema, has_topic=options.topic is not None)
        return StreamWriter(options, schema)


def _check_append(*, overwrite: bool) -> None:
    if overwrite:
        raise ConfigError(
            "a topic cannot be overwritten",
            hint='use mode("append"), and for a stream outputMode("append") or "update"',
        )
