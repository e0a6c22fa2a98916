"""The catalogue of mistakes: each fits the code, and each is noticed."""

import pytest

from chaos.sim.hunting import hunt
from chaos.sim.mutants import MUTANTS
from chaos.sim.patching import Mutant, planted

QUICK = (
    "high watermark falls",
    "read without a barrier",
    "log flushed without fsync",
)


def named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_the_code(mutant: Mutant) -> None:
    """A failure here: the function has changed, so bring the words in chaos/sim/mutants.py up to
    date with it.
    """
    with planted(mutant):
        pass


def test_names_are_told_apart() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 14


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_mutant_is_caught(name: str) -> None:
    assert hunt(named(name)).rule


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_caught(mutant: Mutant) -> None:
    catch = hunt(mutant)
    assert catch.rule, catch
