"""What `make` says of itself."""

import os
import subprocess

from tests.tidy.repository import make_targets
from tests.tidy.source import ROOT


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as from a shell, also when make runs the tests."""
    outer = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"}
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    command = ["make", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_make_alone_lists_every_target() -> None:
    listed = {line.split()[1] for line in make().stdout.splitlines() if line.startswith("  make ")}
    assert listed == make_targets((ROOT / "Makefile").read_text())


def test_a_python_that_is_missing_is_named_in_one_line() -> None:
    answer = make("core", "PYTHON=/nowhere/python")
    assert answer.returncode != 0
    said, failed = answer.stderr.splitlines()
    assert said.startswith("Python 3.11 or newer is needed")
    assert failed.startswith("make: ***")
