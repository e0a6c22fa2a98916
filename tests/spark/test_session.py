import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlog.errors import ConfigError
from spark_connector import session as exported
from spark_connector.session import (
    java_home,
    java_version,
    session,
    spark_conf,
    spark_environment,
    wrap_java,
)

ROOT = str(Path(__file__).resolve().parents[2])


def fake_java(home: Path, version: str) -> Path:
    """Says its version, and the arguments that it was given."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\necho "$@"\n')
    java.chmod(0o755)
    return home


def test_the_package_offers_the_function_and_not_the_module() -> None:
    assert exported is session


def test_keywords_are_options_of_spark() -> None:
    assert spark_conf(
        {
            "master": "local[2]",
            "app_name": "orders",
            "spark_ui_enabled": False,
            "spark_sql_shuffle_partitions": 4,
            "spark.executorEnv.MY_NAME": "x",
        }
    ) == {
        "spark.master": "local[2]",
        "spark.app.name": "orders",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.executorEnv.MY_NAME": "x",
    }


def test_what_is_no_option_of_spark_is_refused() -> None:
    with pytest.raises(ConfigError, match="'shuffle_partitions' is no option of a Spark session"):
        session(shuffle_partitions=4)


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("nonsense", 0)]
)
def test_versions_of_java(tmp_path: Path, version: str, major: int) -> None:
    assert java_version(fake_java(tmp_path, version)) == major


def test_where_no_java_is_the_version_is_0(tmp_path: Path) -> None:
    assert java_version(tmp_path) == 0


def test_a_java_home_that_is_new_enough_stays(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "new", "17.0.1")
    other = fake_java(tmp_path / "other", "21")
    assert java_home({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == home


def test_an_old_java_home_gives_way_to_the_one_on_the_path(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    new = fake_java(tmp_path / "new", "21.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(new / "bin" / "java")
    found = java_home({"JAVA_HOME": str(old), "PATH": str(tmp_path / "bin")})
    assert found == new.resolve()


def test_the_java_of_pythons_environment_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    ours = fake_java(tmp_path / "java", "21.0.4")
    assert java_home({"PATH": str(tmp_path / "empty")}) == ours


def test_without_java_the_error_says_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "nothing"))
    module = sys.modules["spark_connector.session"]  # by its name one gets the function
    monkeypatch.setattr(module, "JAVA_WHEEL", "no_such_wheel")
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(ConfigError, match=r"Java 17 or newer: .*old has 11"):
        java_home({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"there is no Java .*JAVA_HOME"):
        java_home({"PATH": str(tmp_path)})


def test_the_packaged_java_is_not_asked_for_the_module_that_it_lacks(tmp_path: Path) -> None:
    runtime = fake_java(tmp_path / "java-runtime", "21")
    for name in ("lib", "conf"):
        (runtime / name).mkdir()
    home = wrap_java(runtime, tmp_path / "home")
    assert wrap_java(runtime, home) == home, "a second time it is there already"
    answer = subprocess.run(
        [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "-Xmx1g a b\n"
    assert (home / "lib").is_dir()


def test_the_environment_names_this_python_and_this_machine() -> None:
    found = spark_environment({"PATH": os.environ["PATH"]})
    assert java_version(Path(found["JAVA_HOME"])) >= 17
    assert found["PYSPARK_PYTHON"] == sys.executable
    assert found["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert found["PYTHONPATH"] == ROOT


def test_what_the_user_has_set_stays() -> None:
    given = {
        "PATH": os.environ["PATH"],
        "PYSPARK_PYTHON": "/opt/python",
        "SPARK_LOCAL_IP": "10.0.0.7",
        "PYTHONPATH": f"/my/modules{os.pathsep}{ROOT}",
    }
    found = spark_environment(given)
    assert {name: found[name] for name in given if name != "PATH"} == {
        name: value for name, value in given.items() if name != "PATH"
    }


def test_a_driver_of_a_real_cluster_keeps_its_own_address() -> None:
    found = spark_environment({"PATH": os.environ["PATH"]}, master="spark://head:7077")
    assert "SPARK_LOCAL_IP" not in found
