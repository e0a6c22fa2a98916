import subprocess
import sys

import pytest

from kraftlog._check import InvariantViolation, invariant


def test_a_rule_that_holds_says_nothing() -> None:
    invariant(True, "never shown", number=1)


def test_a_broken_rule_shows_the_facts() -> None:
    with pytest.raises(InvariantViolation, match=r"^commit past log: commit=7 end='five'$"):
        invariant(False, "commit past log", commit=7, end="five")


def test_no_handler_of_ordinary_errors_catches_it() -> None:
    assert not issubclass(InvariantViolation, Exception)


def test_it_survives_optimised_python() -> None:
    script = "from kraftlog._check import invariant; invariant(False, 'still checked')"
    command = [sys.executable, "-O", "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "InvariantViolation: still checked" in run.stderr
