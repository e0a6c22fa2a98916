from pathlib import Path

from tests.kraftctl.conftest import invoke


def test_files_are_dumped_and_verified_without_a_server(tmp_path: Path) -> None:
    # R28
    assert invoke("log", "dump", str(tmp_path / "nowhere")).code != 0
    assert invoke("log", "verify", "--help").code == 0
