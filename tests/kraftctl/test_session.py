from pathlib import Path

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
