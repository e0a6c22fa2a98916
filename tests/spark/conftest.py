"""One Spark session for all tests of a process: it takes seconds to start.

A module that uses it says so by its mark: all of them are for one worker.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_connector import session


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "xdist_group(name): also where xdist is switched off")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    made = session(
        master="local[2,3]",  # a task may fail twice
        app_name="kraftlog tests",
        spark_ui_enabled=False,
        spark_ui_showConsoleProgress=False,
        spark_sql_shuffle_partitions=2,
        **{"spark.sql.warehouse.dir": str(warehouse)},
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()
