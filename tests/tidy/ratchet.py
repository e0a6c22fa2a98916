"""What is over budget today and may only shrink.

An entry names a size and what it is now. A size that grows fails, and so does one that shrank
while its entry did not: tighten the entry, or delete it once the size is within its budget.
"""

from collections.abc import Mapping

OVER_BUDGET: Mapping[str, int] = {}


def complaints(measured: Mapping[str, int], allowed: Mapping[str, int]) -> list[str]:
    """Where what is over budget and what is allowed to be differ."""
    return [
        *(
            f"{name} is {size}" + (f", was {allowed[name]}" if name in allowed else "")
            for name, size in sorted(measured.items())
            if size > allowed.get(name, 0)
        ),
        *(
            f"{name} shrank from {size} to {measured.get(name, 'within budget')}: tighten its entry"
            for name, size in sorted(allowed.items())
            if measured.get(name, 0) < size
        ),
    ]
