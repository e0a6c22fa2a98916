"""`invariant()`: the line between an operating error and a bug of ours.

An operating error (peer gone, stale epoch, damaged file) is a typed exception of
`kraftlog.errors`.
A broken invariant is our own bug: nobody handles it, and the process that finds one ends.
"""


class InvariantViolation(BaseException):
    """A rule of this program does not hold. A BaseException, so that no handler eats it."""


def invariant(holds: bool, rule: str, **facts: object) -> None:
    """Like assert, but it survives `python -O` and prints the numbers a reader needs."""
    if not holds:
        raise InvariantViolation(f"{rule}: " + " ".join(f"{k}={v!r}" for k, v in facts.items()))
