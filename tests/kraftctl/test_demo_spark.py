import sys
from pathlib import Path

import pytest

from kraftctl.demo_spark import require_spark
from kraftctl.exit_codes import USAGE
from kraftlog.errors import ConfigError
from tests.kraftctl.conftest import invoke


def test_without_spark_the_demo_does_not_even_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"no module pyspark .*--no-spark"):
        require_spark({})


def test_without_java_it_does_not_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    ran = invoke("demo", "--spark", env={"PATH": str(tmp_path), "JAVA_HOME": ""})
    assert ran.code == USAGE
    assert "error: Spark needs Java 17 or newer" in ran.err
    assert "quorum formed" not in ran.out
