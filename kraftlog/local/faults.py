"""What can be broken between the nodes of a local cluster, and what cannot yet."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import NoReturn

from kraftlog._later import not_yet
from kraftlog.errors import ConfigError, NotYetSupported
from kraftlog.local.layout import CLIENTS, Layout
from kraftlog.local.ways import Edge, Ways
from kraftlog.resolver import RESOLVE_VARIABLE

Nodes = str | Iterable[str]


class Breakable(ABC):
    """The part of a LocalCluster that lies between its nodes."""

    _ways: Ways | None = None
    """None: nodes dial each other directly."""
    _isolated: set[str]

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Where the nodes are."""

    # -- routes

    @property
    def client_environment(self) -> dict[str, str]:
        """What the environment of a client's process has to have for `reroute` to reach it."""
        path = self.layout.resolve_path(CLIENTS)
        if not os.path.exists(path):
            self.layout.write_resolve(CLIENTS, {})
        return {RESOLVE_VARIABLE: path}

    def reroute(self, name: str, routes: Mapping[str, str]) -> None:
        """Send a node's dials elsewhere, from its next one on: address to address. A proxy there
        can then cut or slow each edge. `clients` stands for all clients.
        """
        if name != CLIENTS:
            self.layout.find(name)
        self.layout.write_resolve(name, routes)

    def _lay_ways(self) -> None:
        """From every node to every other one, before they first dial; also to one that is new."""
        ways = self._ways
        if ways is None:
            return
        members = self.layout.members
        for source in members:
            others = [each for each in members if each is not source]
            routes = {
                each.address: ways.add((source.name, each.name), each.address) for each in others
            }
            self.layout.write_resolve(source.name, routes)

    # -- partitions

    def partition(self, one: Nodes, other: Nodes) -> None:
        """Nothing goes between these any more, in either direction, until `heal`. Clients and
        other nodes still reach both.
        """
        ways, sides = self._faulty(), [self._names_of(each) for each in (one, other)]
        both = sides[0] & sides[1]
        if both:
            raise ConfigError(f"{min(both)} is on both sides", hint="name it once")
        ways.shut(_between(*sides))

    def isolate(self, nodes: Nodes) -> None:
        """Cut them off from all others, until `heal`. Clients still reach them. `wait_healthy` does
        not wait for them meanwhile.
        """
        ways, cut_off = self._faulty(), self._names_of(nodes)
        rest = {member.name for member in self.layout.members} - cut_off
        ways.shut(_between(cut_off, rest))
        self._isolated |= cut_off

    def heal(self) -> None:
        """All ways are open again, and what has waited goes on."""
        self._faulty().open_all()
        self._isolated.clear()

    def _take_ways_back(self) -> None:
        """Nodes dial each other directly again; a start without faults would find no way."""
        if self._ways is not None:
            for member in self.layout.members:
                self.layout.write_resolve(member.name, {})
            self._ways.close()
            self._ways = None

    def _faulty(self) -> Ways:
        if self._ways is None:
            raise ConfigError(
                "the nodes of this cluster dial each other directly, and nothing can come between",
                hint="start it with LocalCluster(faults=True), in pytest with kraft(faults=True)",
            )
        return self._ways

    def _names_of(self, nodes: Nodes) -> set[str]:
        given = [nodes] if isinstance(nodes, str) else nodes
        return {self.layout.find(name).name for name in given}

    # -- later

    clock_skew = not_yet("clock_skew", "a clock that a node can be told")
    metadata = not_yet("metadata", "metadata as of an offset", "kraftctl meta log shows the past")

    @property
    def history(self) -> NoReturn:
        """Not there yet: needs what all clients have done, in one place."""
        raise NotYetSupported(
            "history needs what all clients have done", hint="a drill has one: kraftctl drill run"
        )


def _between(one: Iterable[str], other: Iterable[str]) -> list[Edge]:
    right = list(other)
    return [edge for a in one for b in right for edge in ((a, b), (b, a))]
