"""A node on a command line: by its number, or as local clusters name it, b1 or c1."""

import re

import click

from kraftlog.errors import ConfigError
from kraftlog.local.layout import FIRST_BROKER_ID, FIRST_CONTROLLER_ID

ID_MAX = 2**31 - 1

_NODE = re.compile(r"([bc]?)(\d{1,10})", re.ASCII)
_FIRST = {"": 0, "b": FIRST_BROKER_ID - 1, "c": FIRST_CONTROLLER_ID - 1}


def node_number(text: str) -> int | None:
    """b2 is broker 2, c2 is controller 102; None: it is neither that nor a number."""
    found = _NODE.fullmatch(text)
    if found is None:
        return None
    number = _FIRST[found[1]] + int(found[2])
    return number if number <= ID_MAX and (int(found[2]) or not found[1]) else None


def node_numbers(text: str, flag: str) -> tuple[int, ...]:
    """Several, with commas between, and none of them twice."""
    numbers = [node_number(part.strip()) for part in text.split(",")]
    known = tuple(number for number in numbers if number is not None)
    if len(set(known)) != len(numbers):
        raise ConfigError(f"{flag} {text}", hint=f"it looks like {flag} 1,2,3 or b1,b2,b3")
    return known


class _Node(click.IntRange):
    name = "node"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        number = value if isinstance(value, int) else node_number(str(value))
        if number is None:
            self.fail(f"{value!r} is no node: it looks like 1, b1 or c1", param, ctx)
        return number


NODE = _Node(0, ID_MAX)
