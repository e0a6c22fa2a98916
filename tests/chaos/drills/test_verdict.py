import math

from chaos.drills.targets import Target
from chaos.drills.verdict import judge_targets, safety_only
from chaos.live.timing import timing_of

FAST = timing_of("fast")


def test_a_time_is_judged_and_related_to_its_timeout() -> None:
    (found,) = judge_targets({"u_write": 3.0}, [Target("u_write", 2.5, per="session")], FAST)
    assert not found.ok
    assert found.ratio == 2.0
    assert found.document()["measured"] == 3.0


def test_what_was_never_measured_is_missed() -> None:
    (found,) = judge_targets({}, [Target("u_write", 2.5, per="session")], FAST)
    assert math.isnan(found.measured)
    assert not found.ok
    assert found.document()["measured"] is None


def test_exactly_the_target_is_met() -> None:
    (found,) = judge_targets({"elections": 0.0}, [Target("elections", 0, unit="")], FAST)
    assert found.ok
    assert found.ratio is None


def test_safety_alone_judges_that_it_converges() -> None:
    assert [each.ok for each in safety_only({"converge": 30.0, "u_write": 99.0})] == [True]
    assert [each.ok for each in safety_only({})] == [False]
