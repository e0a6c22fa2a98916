"""What `make check-native` does where it cannot run."""

import subprocess
import sys
from pathlib import Path

from tests.native import check_native


def test_without_a_compiler_it_says_so_and_is_skipped() -> None:
    ran = subprocess.run(
        [sys.executable, check_native.__file__],
        env={"PATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == check_native.SKIPPED
    assert ran.stderr.startswith("check-native: skipped, no compiler")
