"""Names of proxies and toxics that both servers can be asked for again."""

import re

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def name_problem(name: str) -> str | None:
    """Why a name is no good: one with "/" could be made, and never fetched or deleted."""
    if _NAME.fullmatch(name) and name not in {".", ".."}:
        return None
    return f"invalid name {name!r}: only letters, digits and _ . - may be in it"
