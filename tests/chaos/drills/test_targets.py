import pytest

from chaos.drills import targets
from chaos.drills.catalog import all_drills
from chaos.live.timing import TIMINGS
from kraftlog.errors import ConfigError


def test_every_drill_has_its_targets_and_every_target_its_drill() -> None:
    assert {each.name for each in all_drills()} <= targets.names()


@pytest.mark.parametrize("profile", sorted(TIMINGS))
def test_every_target_has_a_number_in_every_profile(profile: str) -> None:
    for name in targets.names():
        found = targets.targets_of(name, profile)
        assert found[-1].name == "converge"  # holds for all
        for each in found:
            assert each.limit >= 0
            assert not each.per or TIMINGS[profile].of(each.per) > 0


def test_the_targets_are_those_of_the_catalog() -> None:
    found = {each.name: each for each in targets.targets_of("kill-partition-leader", "fast")}
    assert found["u_write"].limit == 2.5  # session + 1 s
    assert found["u_write"].per == "session"


def test_a_profile_without_a_number_is_named() -> None:
    with pytest.raises(ConfigError, match="no number for profile 'slow'"):
        targets.targets_of("baseline", "slow")
