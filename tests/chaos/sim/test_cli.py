"""`python -m chaos.sim`."""

import json

import pytest

from chaos.sim import cli
from chaos.sim.mutants import MUTANTS
from chaos.sim.options import RANGES
from chaos.sim.patching import planted

ALL = ",".join(RANGES)


def test_seeds_are_run_and_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--seed", "17", "--seeds", "1", "--workers", "1", "-o", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["seeds"] == 1
    assert said.err.startswith("seeds 17 to 17\n")


def test_a_replay_tells_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--seed", "17", "--seeds", "1", "--without", "loss", "--trace"]) == 0
    said = capsys.readouterr().out
    assert "n1 starts" in said
    assert "seed 17: clean, trace " in said.splitlines()[-1]


def test_a_failure_is_shrunk_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    mutant = next(each for each in MUTANTS if each.name == "leadership announced too early")
    with planted(mutant):
        assert cli.main(["run", "--seed", "17", "--seeds", "1", "--workers", "1"]) == 1
        said = capsys.readouterr()
        assert "seed 17 failed; shrinking" in said.err
        assert "seed 17 failed: InvariantViolation: Q10" in said.out
        assert "replay: make sim SEED=17 SEEDS=1 TRACE=1 WITHOUT=" in said.out
        assert cli.main(["run", "--seed", "17", "--seeds", "1", "--without", ALL]) == 1
        assert "seed 17 failed: InvariantViolation: Q10" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["run", "--seeds", "0"], ["run", "--without", "meteors"], ["mutants", "--seeds", "x"], []],
)
def test_nonsense_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert "usage: python -m chaos.sim" in capsys.readouterr().err


def test_mutants_are_hunted(capsys: pytest.CaptureFixture[str]) -> None:
    only = ["mutants", "--workers", "1", "--only", "announced too early"]
    assert cli.main(only) == 0
    assert "Q10 leads before it has applied all" in capsys.readouterr().out
    assert cli.main([*only[:4], "removed leader", "--seeds", "1", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["rule"] == ""
