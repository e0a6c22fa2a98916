import os
from pathlib import Path

import pytest

from tests.kraftctl.conftest import Run, invoke


def test_nobody_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    ran = invoke("topic", "ls", "-b", "127.0.0.1:1", "--timeout", "1s")
    assert ran.code == 4
    assert ran.err.startswith("error: ")
    assert "Traceback" not in ran.err


def test_without_a_cluster_it_says_how_to_get_one(tmp_path: Path) -> None:
    ran = invoke("topic", "ls", "-o", "json", env={"XDG_DATA_HOME": str(tmp_path)})
    assert ran.code == 5
    assert "kraftctl up" in ran.out


def test_a_wrong_flag_is_a_usage_error() -> None:
    assert invoke("topic", "ls", "--colour").code == 2
    assert invoke("topic", "ls", "-o", "xml").code == 2


def test_an_output_is_one_document(kraftctl: Run) -> None:
    assert isinstance(kraftctl("topic", "ls", "-o", "json").data, list)


def test_what_cannot_be_looked_at_is_said_and_not_taken_for_missing(tmp_path: Path) -> None:
    """A link to itself stands for all that the system refuses, to root as well."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    env = {"XDG_DATA_HOME": str(loop), "XDG_RUNTIME_DIR": str(tmp_path)}
    place = f"--dir {loop}/c1"
    for line in (
        "up -d",
        "ps",
        "status",
        "topic ls",
        f"quorum form --id 1 --listen 127.0.0.1:9 {place}",
        f"node run --role controller {place}",
        f"meta ls {place}",
        f"quorum history {place}",
        f"log verify {loop}/c1",
    ):
        ran = invoke(*line.split(), env=env)
        assert (ran.code, ran.out) in ((1, ""), (6, "")), line
        assert "Too many levels of symbolic links" in ran.err.splitlines()[0], line


def test_the_environment_says_how_long_to_wait() -> None:
    env = {"KRAFTCTL_TIMEOUT": "soon"}
    ran = invoke("topic", "ls", "-b", "127.0.0.1:1", env=env)
    assert (ran.code, "'soon' is no duration" in ran.err) == (2, True)
    assert invoke("topic", "ls", "-b", "127.0.0.1:1", "--timeout", "1s", env=env).code == 4


def test_a_profile_has_a_short_flag_where_it_is_free(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    ran = invoke("topic", "ls", "-p", "prod", env=env)
    assert (ran.code, "there is no profile 'prod'" in ran.err) == (5, True)
    assert invoke("topic", "create", "t", "-p", "prod", env=env).code == 2


def test_colour_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "to be restored")
    monkeypatch.delenv("NO_COLOR")
    assert invoke("version").code == 0
    assert "NO_COLOR" not in os.environ
    assert invoke("version", "--no-color").code == 0
    assert os.environ["NO_COLOR"] == "1"
