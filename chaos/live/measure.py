"""Times of a drill as numbers."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise


def longest_gap(times: Iterable[float], begin: float, end: float) -> float:
    """The longest time without one of these moments between two others."""
    inside = sorted(each for each in times if begin <= each <= end)
    return max(after - before for before, after in pairwise([begin, *inside, end]))


def percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank: a value that was measured, never one between two. NaN of none."""
    if not values:
        return math.nan
    rank = max(1, math.ceil(share * len(values)))
    return sorted(values)[rank - 1]
