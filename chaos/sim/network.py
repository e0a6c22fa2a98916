"""Links between machines: each direction by itself loses, delays, repeats, holds or cuts.

Every message takes a time of its own, so messages of one link overtake each other.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from chaos.sim.options import Options
from chaos.sim.schedule import Schedule

Deliver = Callable[[bytes], None]
Link = tuple[int, int]

FAST_MS = (0.1, 3.0)
SLOW_MS = (50.0, 900.0)


@dataclass(slots=True, eq=False)
class Block:
    """Links that nothing passes. A clog keeps what came meanwhile, a cut loses it."""

    links: frozenset[Link]
    keeps: bool
    held: list[tuple[Link, bytes, Deliver]] = field(default_factory=list)


class Network:
    def __init__(self, dice: Random, options: Options, schedule: Schedule) -> None:
        self._dice = dice
        self._schedule = schedule
        self._loss = options.strength("loss")
        self._repeat = options.strength("duplicate")
        self._slow = options.strength("delay")
        self._blocks: list[Block] = []

    def heal(self) -> None:
        """All faults end; what was held comes now."""
        self._loss = self._repeat = self._slow = 0.0
        for block in list(self._blocks):
            self.mend(block)

    def block(self, links: Iterable[Link], *, keeps: bool = False) -> Block:
        block = Block(frozenset(links), keeps)
        self._blocks.append(block)
        return block

    def mend(self, block: Block) -> None:
        if block in self._blocks:
            self._blocks.remove(block)
            for link, data, deliver in block.held:
                self._send(link, data, deliver)

    def transfer(self, link: Link, data: bytes, deliver: Deliver) -> None:
        """Carry a message, or lose it, or carry it twice."""
        for _ in range(2 if self._dice.random() < self._repeat else 1):
            if self._dice.random() >= self._loss:
                self._send(link, data, deliver)

    def _send(self, link: Link, data: bytes, deliver: Deliver) -> None:
        is_slow = self._dice.random() < self._slow
        delay_ms = self._dice.uniform(*(SLOW_MS if is_slow else FAST_MS))
        self._schedule.later(delay_ms, lambda: self._arrive(link, data, deliver))

    def _arrive(self, link: Link, data: bytes, deliver: Deliver) -> None:
        """A block also stops what was on its way when it came."""
        for block in self._blocks:
            if link in block.links:
                if block.keeps:
                    block.held.append((link, data, deliver))
                return
        deliver(data)
