"""One proxy for each directed edge of a cluster, so that each can be cut, slowed or shredded alone.

The proxy `c1__b2` carries what c1 dials at b2; `cli__b2` what clients dial there. Where a dial goes
is told to each process by its map of addresses (`kraftlog.resolver`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from kraftlog.errors import ConfigError
from kraftlog.local.layout import CLIENTS, Layout, Member

CLIENT = "cli"


class Proxies(Protocol):
    """What is used of `chaos.toxiproxy.wrapper.ToxiServer`."""

    def create(self, name: str, upstream: str, avoid: Collection[int] = ()) -> str: ...
    def cut(self, name: str) -> None: ...
    def enable(self, name: str) -> None: ...
    def add_toxic(
        self,
        name: str,
        kind: str,
        stream: str = "downstream",
        *,
        toxic: str | None = None,
        toxicity: float = 1.0,
        **attributes: int,
    ) -> str: ...
    def reset(self) -> None: ...


UP, DOWN = "upstream", "downstream"
Toxic = tuple[str, str, Mapping[str, int]]

# Each fault of an edge as toxics; `cut` is none, it switches the proxy off.
FAULTS: Mapping[str, tuple[Toxic, ...]] = {
    "blackhole": (("timeout", UP, {"timeout": 0}),),
    "ack-loss": (("timeout", DOWN, {"timeout": 0}),),
    "slow": (("latency", DOWN, {"latency": 200, "jitter": 50}),),
    "thin": (("bandwidth", UP, {"rate": 50}), ("bandwidth", DOWN, {"rate": 50})),
    "shred": tuple(
        ("slicer", stream, {"average_size": 33, "size_variation": 31, "delay": 0})
        for stream in (UP, DOWN)
    ),
    "rst": (("reset_peer", UP, {"timeout": 200}),),
    "cut-after-n": (("limit_data", DOWN, {"bytes": 2_000}),),
}


def edge_name(source: str, target: str) -> str:
    return f"{source}__{target}"


class Edges:
    def __init__(self, proxies: Proxies) -> None:
        self._proxies = proxies
        self._routes: dict[str, dict[str, str]] = {}
        """Of each source: real address -> address of its proxy."""
        self._names: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._names)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Source and target of each."""
        split = (name.split("__") for name in sorted(self._names))
        return [(source, target) for source, target in split]

    @property
    def routes(self) -> dict[str, str]:
        """Those of clients, which dial everybody."""
        return dict(self._routes[CLIENT])

    def lay(self, layout: Layout) -> None:
        """All edges of a cluster that does not run yet."""
        for member in layout.members:
            self.add(layout, member)

    def add(self, layout: Layout, member: Member) -> None:
        """The edges between one more node and all that have theirs."""
        sources = [CLIENT, *(name for name in self._routes if name != CLIENT)]
        known = [each for each in layout.members if each.name in self._routes]
        # Nobody listens there yet, and so a proxy would find it free.
        avoid = {each.port for each in layout.members}
        for source in sources:
            self._lay(source, member, avoid)
        self._routes.setdefault(member.name, {})
        for target in known:
            if target.name != member.name:
                self._lay(member.name, target, avoid)
        for source, routes in self._routes.items():
            layout.write_resolve(CLIENTS if source == CLIENT else source, routes)

    def _lay(self, source: str, target: Member, avoid: Collection[int]) -> None:
        name = edge_name(source, target.name)
        listen = self._proxies.create(name, target.address, avoid)
        self._routes.setdefault(source, {})[target.address] = listen
        self._names.add(name)

    # -- faults

    def cut(self, source: str, target: str) -> None:
        """One direction of dialling: what is open there ends, what is tried is refused."""
        self._proxies.cut(self._find(source, target))

    def restore(self, source: str, target: str) -> None:
        self._proxies.enable(self._find(source, target))

    def spoil(self, fault: str, source: str, target: str) -> None:
        if fault == "cut":
            self.cut(source, target)
            return
        if fault not in FAULTS:
            known = ", ".join(["cut", *FAULTS])
            raise ConfigError(f"{fault!r} is no fault of an edge", hint=f"there are {known}")
        name = self._find(source, target)
        for kind, stream, attributes in FAULTS[fault]:
            self._proxies.add_toxic(
                name, kind, stream, toxic=f"{kind}_{stream}", toxicity=1.0, **attributes
            )

    def isolate(self, node: str, others: Iterable[str]) -> None:
        """Both directions between a node and each of the others."""
        self._both(node, others, self.cut)

    def rejoin(self, node: str, others: Iterable[str]) -> None:
        self._both(node, others, self.restore)

    def _both(self, node: str, others: Iterable[str], act: Callable[[str, str], None]) -> None:
        for other in others:
            for source, target in ((node, other), (other, node)):
                if edge_name(source, target) in self._names:
                    act(source, target)

    def heal(self) -> None:
        """All edges as they were in the beginning."""
        self._proxies.reset()

    def _find(self, source: str, target: str) -> str:
        name = edge_name(source, target)
        if name not in self._names:
            raise ConfigError(f"there is no edge {name}", hint="edges are named c1__b2 or cli__b2")
        return name
