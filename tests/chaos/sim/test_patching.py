"""Mistakes that are planted and taken out again."""

import pytest

from chaos.sim.patching import MisfitError, Mutant, find_function, planted
from quorum.core.log_view import Position
from quorum.core.tally import majority

MAJORITY = "quorum.core.tally:majority"


def test_a_mutant_is_there_and_then_gone() -> None:
    with planted(Mutant("half is enough", MAJORITY, (("+ 1", ""),))):
        assert majority(4) == 2
    assert majority(4) == 3


def test_it_is_gone_also_after_a_failure() -> None:
    mutant = Mutant("half is enough", MAJORITY, (("+ 1", ""),))
    with pytest.raises(ZeroDivisionError), planted(mutant):
        raise ZeroDivisionError
    assert majority(4) == 3


def test_methods_and_properties_can_be_mutated() -> None:
    behind, ahead = Position(1, 5), Position(2, 3)
    path = "quorum.core.log_view:Position.is_behind"
    with planted(Mutant("never behind", path, (("return mine < theirs", "return False"),))):
        assert not behind.is_behind(ahead)
    assert behind.is_behind(ahead)
    assert find_function("quorum.core.replica:Replica.is_voter").__name__ == "is_voter"


@pytest.mark.parametrize(
    ("function", "before"),
    [(MAJORITY, "+ 2"), (MAJORITY, "voters"), ("quorum.core.tally:gone", "+ 1")],
)
def test_a_mutant_that_no_longer_fits_says_so(function: str, before: str) -> None:
    with pytest.raises(MisfitError), planted(Mutant("old", function, ((before, ""),))):
        pass
    assert majority(4) == 3
