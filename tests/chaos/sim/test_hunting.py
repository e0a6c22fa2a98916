"""Hunting mutants."""

from chaos.sim.hunting import hunt, hunt_all
from chaos.sim.patching import Mutant

_COUNTS_UNFLUSHED = Mutant(
    "leader counts itself before its fsync",
    "quorum.core.leader:_flushed_end",
    (("replica.log.flushed_offset", "replica.log.end_offset"),),
    seeds=20,
)
_HARMLESS = Mutant(
    "harmless",
    "quorum.core.tally:majority",
    (("voters // 2 + 1", "1 + voters // 2"),),
    seeds=1,
)
_NO_PYTHON_NAME = Mutant(
    "broken", "quorum.core.tally:majority", (("voters // 2", "no_such_name"),), seeds=1
)


def test_a_mutant_is_caught_by_a_rule() -> None:
    catch = hunt(_COUNTS_UNFLUSHED)
    assert catch.rule == "Q7 committed without a durable majority"
    assert catch.broken == ""
    assert 1 <= catch.seeds <= 20
    assert catch.cpu_seconds > 0


def test_a_mutant_that_does_no_harm_survives() -> None:
    catch = hunt(_HARMLESS, first_seed=17)
    assert (catch.rule, catch.seeds, catch.broken) == ("", 1, "")


def test_code_that_does_not_run_is_no_catch() -> None:
    catch = next(hunt_all([_NO_PYTHON_NAME], workers=1))
    assert catch.rule == ""
    assert catch.broken.startswith("NameError")
