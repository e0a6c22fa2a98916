"""The targets of all drills, from targets.toml beside this file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kraftlog.errors import ConfigError

FILE = Path(__file__).with_name("targets.toml")
ALL = "all"


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    limit: float
    unit: str = "s"
    per: str = ""
    """The timeout to which a time is related; empty: none."""
    words: str = ""


def targets_of(drill: str, profile: str) -> list[Target]:
    """What this drill must reach; what holds for all comes last."""
    return [
        _target(name, fields, profile)
        for section in (drill, ALL)
        for name, fields in _document().get(section, {}).items()
    ]


def names() -> set[str]:
    """The drills that have targets."""
    return set(_document()) - {ALL}


@cache
def _document() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    with FILE.open("rb") as file:
        return tomllib.load(file)


def _target(name: str, fields: Mapping[str, object], profile: str) -> Target:
    limit = fields.get(profile)
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise ConfigError(f"{FILE.name}: {name} has no number for profile {profile!r}")
    return Target(
        name,
        float(limit),
        str(fields.get("unit", "s")),
        str(fields.get("per", "")),
        str(fields.get("words", name)),
    )
