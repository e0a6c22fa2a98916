import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from kraftlog.errors import ConfigError
from kraftlog.types import TimestampType, TopicPartition
from spark_connector.schema import (
    arrow_schema,
    check_columns,
    check_rows,
    project,
    source_schema,
)


def ddl(text: str) -> StructType:
    """`a int, b binary` without the JVM that Spark's own parser needs."""
    kinds = {"int": "integer", "bigint": "long"}
    fields = [each.split(":") for each in text.split(", ")]
    return StructType.fromJson(
        {
            "fields": [
                {"name": name, "type": kinds.get(kind, kind), "nullable": True, "metadata": {}}
                for name, kind in fields
            ]
        }
    )


def test_the_columns_of_kafkas_source() -> None:
    names = source_schema(include_headers=False).simpleString()
    assert names == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    with_headers = source_schema(include_headers=True).fields[-1]
    assert with_headers.simpleString() == "headers:array<struct<key:string,value:binary>>"


def test_a_schema_leaves_columns_out() -> None:
    assert check_columns(ddl("value:binary, offset:bigint")) == ("value", "offset")
    with pytest.raises(ConfigError, match=r"no column 'ofset' .did you mean offset"):
        check_columns(ddl("ofset:bigint"))
    with pytest.raises(ConfigError, match=r"column value is string .*make it binary"):
        check_columns(ddl("value:string"))
    with pytest.raises(ConfigError, match="name each once"):
        check_columns(ddl("value:binary, value:binary"))
    with pytest.raises(ConfigError, match="columns none"):
        check_columns(StructType([]))


def test_what_a_sink_can_write() -> None:
    check_rows(ddl("value:string"), has_topic=True)
    check_rows(ddl("topic:string, key:binary, value:binary, partition:int"), has_topic=False)
    with pytest.raises(ConfigError, match=r"no column value among key"):
        check_rows(ddl("key:string"), has_topic=True)
    with pytest.raises(ConfigError, match="no topic"):
        check_rows(ddl("value:string"), has_topic=False)
    with pytest.raises(ConfigError, match=r"column value is int .cast it to string or binary"):
        check_rows(ddl("value:int"), has_topic=True)
    with pytest.raises(ConfigError, match="column partition is bigint"):
        check_rows(ddl("value:string, partition:bigint"), has_topic=True)


def test_records_without_headers_have_null() -> None:
    kind = arrow_schema(("headers",)).field("headers").type
    pairs = [[{"key": "a", "value": b"1"}], [], [{"key": "b", "value": None}], []]
    records = pa.record_batch([pa.array(pairs, kind)], names=["headers"])
    columns = ("headers", "topic", "partition", "timestampType")
    made = project(records, columns, TopicPartition("t", 3), TimestampType.APPEND)
    made.validate(full=True)
    assert made.schema.equals(arrow_schema(columns))
    assert made.column("headers").to_pylist() == [pairs[0], None, pairs[2], None]
    assert made.column("topic").to_pylist() == ["t"] * 4
    assert made.column("partition").to_pylist() == [3] * 4
    assert made.column("timestampType").to_pylist() == [1] * 4
