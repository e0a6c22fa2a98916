import os
import pickle
import subprocess
import sys
import sysconfig
from collections.abc import Callable

from pyspark.serializers import CloudPickleSerializer

from spark_connector.batch import BatchReader
from spark_connector.options import sink_options, source_options
from spark_connector.schema import source_schema
from spark_connector.sink import BatchWriter, StreamWriter
from spark_connector.source import KraftlogSource
from spark_connector.stream import StreamReader
from spark_connector.travel import Travels, unpack

# What Spark pickles with.
dumps: Callable[[object], bytes] = CloudPickleSerializer().dumps  # type: ignore[no-untyped-call]

SERVERS = {"kafka.bootstrap.servers": "b1:1"}


class Bag(Travels):
    def __init__(self, content: str) -> None:
        self.content = content


def test_what_travels_arrives_as_it_was() -> None:
    there = pickle.loads(dumps(Bag("of records")))  # noqa: S301  our own
    assert isinstance(there, Bag)
    assert there.content == "of records"
    again = unpack(pickle.dumps((Bag, {"content": "twice"})))
    assert isinstance(again, Bag)
    assert again.content == "twice"


def test_a_worker_without_the_package_says_what_to_do() -> None:
    options = source_options(SERVERS | {"subscribe": "t"}, streaming=False)
    columns = source_schema(include_headers=False)
    sink = sink_options(SERVERS | {"topic": "t"})
    for travels in (
        KraftlogSource(SERVERS),
        BatchReader(options, ("value",)),
        StreamReader(options, ("value",)),
        BatchWriter(sink, columns),
        StreamWriter(sink, columns),
    ):
        # Without `site` there is no editable install: the packages are there, and we are not.
        answer = subprocess.run(
            [sys.executable, "-S", "-c", "import pickle, sys; pickle.load(sys.stdin.buffer)"],
            input=dumps(travels),
            env=os.environ | {"PYTHONPATH": sysconfig.get_path("purelib")},
            cwd="/",
            capture_output=True,
            check=False,
        )
        said = answer.stderr.decode().splitlines()[-1]
        assert "has no module 'spark_connector' (install kraftlog[spark]" in said, said
        assert "--py-files" in said
