"""A long random walk through the world of one partition: a seed says all."""

import random
from collections.abc import Callable

from tests.brokers.world import LAG_MS, REPLICAS, World


class Walk:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.world = World(min_insync=self.dice.choice([1, 2, 2, 3]))
        steps: dict[Callable[[int], None], int] = {
            self.fetch: 30,
            self.deliver: 60,
            self.repeat: 4,
            self.lose: 6,
            self.metadata: 15,
            self.all_metadata: 4,
            self.produce: 12,
            self.check: 6,
            self.resend: 4,
            self.fence: 2,
            self.unfence: 6,
            self.elect: 3,
            self.crash: 1,
            self.restart: 4,
        }
        # Every walk has its own mix, so that each kind of trouble is sometimes alone.
        self.steps = list(steps)
        self.weights = [
            weight * self.dice.choice([0, 0.3, 1, 1, 3] if weight < 10 else [0.3, 1, 3])
            for weight in steps.values()
        ]

    def run(self, steps: int) -> None:
        for _ in range(steps):
            step = self.dice.choices(self.steps, self.weights)[0]
            step(self.dice.choice(REPLICAS))
            self.world.check_invariants()
        self.world.heal()

    def fetch(self, broker: int) -> None:
        self.world.fetch(broker)

    def deliver(self, _broker: int) -> None:
        bag = self.world.bag
        if bag:  # mostly the newest, so that things get somewhere; sometimes a very old one
            recent = len(bag) - 1 - min(int(self.dice.expovariate(0.7)), len(bag) - 1)
            at = recent if self.dice.random() < 0.9 else self.dice.randrange(len(bag))
            self.world.deliver(bag.pop(at))

    def repeat(self, _broker: int) -> None:
        if self.world.bag:
            self.world.deliver(self.dice.choice(self.world.bag))

    def lose(self, _broker: int) -> None:
        bag = self.world.bag
        if bag:
            bag.pop(self.dice.randrange(len(bag)))

    def metadata(self, broker: int) -> None:
        self.world.apply_next(broker)

    def all_metadata(self, broker: int) -> None:
        """As one delta: what was true in between is never seen."""
        self.world.apply_all(broker)

    def produce(self, _broker: int) -> None:
        leading = [each.id for each in self.world.replicas.values() if each.leading]
        if leading:
            self.world.produce(self.dice.choice(leading))

    def check(self, broker: int) -> None:
        self.world.now_ms += self.dice.choice([1, 10, LAG_MS // 2, LAG_MS + 1])
        if self.dice.random() < 0.5:
            self.world.check(broker)

    def resend(self, broker: int) -> None:
        self.world.resend(broker)

    def fence(self, broker: int) -> None:
        if self.world.controller.is_active(broker):
            self.world.controller.fence(broker)

    def unfence(self, broker: int) -> None:
        self.world.unfence(broker)

    def elect(self, broker: int) -> None:
        self.world.elect(broker)

    def crash(self, broker: int) -> None:
        self.world.crash(broker)

    def restart(self, broker: int) -> None:
        if not self.world.replicas[broker].alive:
            self.world.restart(broker, lost=self.dice.choice([0, 0, 1, 3]))
