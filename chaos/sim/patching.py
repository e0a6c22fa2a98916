"""Plants a mistake in the code under test: a few words of one function are replaced, in memory.

The product knows nothing of it. A mutant whose words are no longer in the function does not fit any
more, and says so: it has to be brought up to date with the code.
"""

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType

from chaos.sim.options import Kind


@dataclass(frozen=True, slots=True)
class Mutant:
    """`function` is `module:name` or `module:Class.name`; `edits` are pairs of before and after."""

    name: str
    function: str
    edits: tuple[tuple[str, str], ...]
    seeds: int = 100
    """Within so many seeds it is caught."""
    kind: Kind = "quorum"
    """The worlds in which it is hunted."""


class MisfitError(Exception):
    """A mutant that does not fit the code any more."""


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """While it lasts the mistake is in the code, wherever the function was imported to."""
    function = find_function(mutant.function)
    sound = function.__code__
    function.__code__ = _mutate(mutant, function)
    try:
        yield
    finally:
        function.__code__ = sound


def find_function(path: str) -> FunctionType:
    module_name, _, names = path.partition(":")
    found: object = import_module(module_name)
    for name in names.split("."):
        found = inspect.getattr_static(found, name, None)
    if isinstance(found, property):
        found = found.fget
    if not isinstance(found, FunctionType):
        raise MisfitError(f"there is no function {path}")
    return found


def _mutate(mutant: Mutant, function: FunctionType) -> CodeType:
    source = textwrap.dedent(inspect.getsource(function))
    source = source[source.index("def ") :]  # without its decorators
    for before, after in mutant.edits:
        if source.count(before) != 1:
            raise MisfitError(
                f"{mutant.name}: {before!r} is {source.count(before)} times in {mutant.function}"
            )
        source = source.replace(before, after)
    names: dict[str, object] = {}
    exec(compile(source, f"<{mutant.name}>", "exec"), function.__globals__, names)  # noqa: S102
    changed = names[function.__name__]
    if not isinstance(changed, FunctionType):
        raise MisfitError(f"{mutant.name} is no function any more")
    return changed.__code__
