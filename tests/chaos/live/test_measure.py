import math

from chaos.live.measure import longest_gap, percentile


def test_a_gap_reaches_from_the_begin_to_the_end() -> None:
    assert longest_gap([], 1.0, 4.0) == 3.0
    assert longest_gap([1.5, 2.0, 2.25], 1.0, 4.0) == 1.75
    assert longest_gap([2.0, 3.5], 0.0, 4.0) == 2.0


def test_what_is_outside_does_not_count() -> None:
    assert longest_gap([0.5, 4.5], 1.0, 4.0) == 3.0


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0, 2.0], 0.95) == 2.0
    assert percentile(range(1, 101), 0.95) == 95
    assert math.isnan(percentile([], 0.5))
