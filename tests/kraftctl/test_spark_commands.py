import subprocess
import sys
from pathlib import Path

import pytest

from kraftctl.exit_codes import USAGE
from tests.kraftctl.conftest import invoke
from tests.kraftctl.test_schema_command import check

CLEAN = {"SPARK_LOCAL_IP": "", "PYSPARK_PYTHON": ""}


def test_a_shell_can_take_what_is_printed() -> None:
    ran = invoke("spark", "env", env=CLEAN)
    assert ran.code == 0
    script = f'{ran.out}\necho "$PYSPARK_PYTHON $SPARK_LOCAL_IP"; "$JAVA_HOME/bin/java" -version'
    answer = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, text=True, check=True, env={}
    )
    assert answer.stdout == f"{sys.executable} 127.0.0.1\n"
    assert "version" in answer.stderr


def test_names_with_blanks_stay_whole() -> None:
    ran = invoke("spark", "env", env={**CLEAN, "PYSPARK_PYTHON": "/my files/python"})
    assert "export PYSPARK_PYTHON='/my files/python'" in ran.out.splitlines()


def test_a_program_gets_json() -> None:
    ran = invoke("spark", "env", "-o", "json", env=CLEAN)
    assert ran.pick("PYSPARK_PYTHON") == sys.executable
    check(ran, "spark env")
    assert ran.pick("SPARK_LOCAL_IP") == "127.0.0.1"


def test_elsewhere_the_drivers_address_is_its_own() -> None:
    ran = invoke("spark", "env", "-o", "json", "--master", "spark://head:7077", env=CLEAN)
    assert isinstance(ran.data, dict)
    assert "SPARK_LOCAL_IP" not in ran.data


def test_without_java_there_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    ran = invoke("spark", "env", env={"PATH": str(tmp_path), "JAVA_HOME": ""})
    assert ran.code == USAGE
    assert "error: Spark needs Java 17 or newer: there is no Java\n" in ran.err
    assert "hint:" in ran.err
