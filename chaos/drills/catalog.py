"""All drills, by name. `kraftctl drill ls` shows them; `docs/DRILLS.md` tells about each."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chaos.live.stage import Stage
from kraftlog.errors import ConfigError

Steps = Callable[[Stage], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    number: int
    name: str
    title: str
    steps: Steps
    in_chaos: bool = False
    """Whether `make chaos` runs it; `make chaos-all` runs all."""
    brokers: int = 3
    replication_factor: int = 3
    config: Mapping[str, str] = field(default_factory=dict)
    topic_config: Mapping[str, str] = field(default_factory=dict)
    hooks: tuple[str, ...] | None = None
    """The directories by which it reaches into the servers (`kraftlog.drill_hooks`); None: not."""
    needs: Callable[[], str] = lambda: ""
    """Why it cannot run on this machine; empty: it can."""


_DRILLS: dict[str, Drill] = {}


def drill(
    number: int,
    name: str,
    title: str,
    *,
    in_chaos: bool = False,
    brokers: int = 3,
    replication_factor: int = 3,
    config: Mapping[str, str] | None = None,
    topic_config: Mapping[str, str] | None = None,
    hooks: tuple[str, ...] | None = None,
    needs: Callable[[], str] = lambda: "",
) -> Callable[[Steps], Steps]:
    """Makes a function a drill."""

    def register(steps: Steps) -> Steps:
        _DRILLS[name] = Drill(
            number=number,
            name=name,
            title=title,
            steps=steps,
            in_chaos=in_chaos,
            brokers=brokers,
            replication_factor=replication_factor,
            config=config or {},
            topic_config=topic_config or {},
            hooks=hooks,
            needs=needs,
        )
        return steps

    return register


def all_drills() -> list[Drill]:
    """In the order of their numbers."""
    from chaos.drills import scripts  # noqa: PLC0415 - they register themselves here

    scripts.load()
    return sorted(_DRILLS.values(), key=lambda each: (each.number, each.name))


def find_drill(name: str) -> Drill:
    known = {each.name: each for each in all_drills()}
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {close[0]}?" if close else "`kraftctl drill ls` shows them"
    raise ConfigError(f"there is no drill {name!r}", hint=hint)
