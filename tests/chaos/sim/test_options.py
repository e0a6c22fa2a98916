"""The swarm."""

from chaos.sim.options import RANGES, Options


def test_a_seed_always_draws_the_same() -> None:
    assert Options.swarm(7) == Options.swarm(7)
    assert Options.swarm(7) != Options.swarm(8)


def test_every_fault_is_sometimes_on_and_sometimes_off_and_within_its_range() -> None:
    drawn = [Options.swarm(seed) for seed in range(200)]
    for name, (low, high) in RANGES.items():
        strengths = [options.strength(name) for options in drawn]
        assert 0.0 in strengths
        assert 60 < sum(strength > 0 for strength in strengths) < 140
        assert all(strength == 0.0 or low <= strength <= high for strength in strengths)
    assert {options.voters for options in drawn} == {1, 2, 3, 4, 5}
    assert {options.brokers for options in drawn} == {0, 1}


def test_one_fault_less() -> None:
    options = Options(faults={"loss": 0.1, "cuts": 0.5})
    assert options.without("loss") == Options(faults={"cuts": 0.5})
    assert str(options.without("loss")).endswith("safety_ms=20000 cuts=0.5")
