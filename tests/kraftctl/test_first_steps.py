"""The blocks of the README that a shell runs, run by a shell; `tests/tidy` runs those in Python."""

import re
import shutil
from pathlib import Path

import pytest

from tests.kraftctl.shells import blocks_of, in_shell
from tests.tidy.repository import make_targets
from tests.tidy.source import ROOT

BLOCKS = blocks_of(ROOT / "README.md", "sh")
SET_UP = re.compile(r"^make (\w+)(?= |$)(.*&& \. \.venv/bin/activate)?")


def test_blocks_begin_with_verbs_of_make_or_go_on() -> None:
    """What tests of make and of the demo run; the rest is run below."""
    verbs = [
        found[1] for block in BLOCKS for found in map(SET_UP.match, block.splitlines()) if found
    ]
    assert verbs == ["demo", "test", "core"]
    assert set(verbs) <= make_targets((ROOT / "Makefile").read_text())


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_other_line_of_the_readme_runs_as_shown(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    lines = [line for block in BLOCKS for line in block.splitlines() if not SET_UP.match(line)]
    assert len(lines) > 10
    try:
        ran = in_shell("\n".join(lines), tmp_path)
    finally:
        in_shell("kraftctl down || true", tmp_path)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    said = ran.stdout.splitlines()
    assert "hi" in said
    assert any(line.startswith("GREEN  cluster") for line in said)
    assert any("session timeout" in line for line in said)
    assert any(line.startswith("@") and "hello-0 begins on" in line for line in said)
    assert "warning:" not in ran.stderr
    assert said[-1] == "dev is stopped; its data stays"
    assert not (tmp_path / ".config").exists()
