"""The data source "kraftlog": what Spark makes of `format("kraftlog")`."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from spark_connector.batch import BatchReader
from spark_connector.options import includes_headers, source_options
from spark_connector.schema import check_columns, source_schema

NAME = "kraftlog"


class KraftlogSource(DataSource):
    """Reads and writes topics; columns and options are those of Spark's own "kafka"."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return source_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(source_options(self.options, streaming=False), check_columns(schema))
