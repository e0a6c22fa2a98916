"""What goes wrong with brokers alone, beside what goes wrong with every machine (`faults`)."""

from collections.abc import Callable
from random import Random

from chaos.sim.metadata_cluster import MetadataCluster
from chaos.sim.node import SimNode

LAG_MS = (1_000.0, 9_000.0)

Fault = Callable[[SimNode, Random], None]


class BrokerFaults:
    def __init__(self, cluster: MetadataCluster) -> None:
        self._cluster = cluster
        self._acts: dict[str, Fault] = {
            "lags": self._lag,
            "broker_stops": self._stop,
            "broker_crashes": self._crash,
            "broker_power_cuts": self._cut_power,
            "broker_wipes": self._wipe,
        }

    def begin(self) -> None:
        for name, act in self._acts.items():
            rate = self._cluster.options.strength(name)
            if rate:
                self._repeat(act, rate, self._cluster.dice(name))

    def _repeat(self, act: Fault, rate: float, dice: Random) -> None:
        def fire() -> None:
            if self._cluster.is_over:
                return
            alive = [node for node in self._cluster.brokers() if node.is_up]
            if alive:
                act(dice.choice(alive), dice)
            self._repeat(act, rate, dice)

        self._cluster.schedule.later(1000 * dice.expovariate(rate), fire)

    def _lag(self, node: SimNode, dice: Random) -> None:
        """It is heard, and does not apply what it fetches."""
        self._cluster.trace.add(f"{node.name} lags")
        self._cluster.let_lag(node, self._cluster.schedule.now + dice.uniform(*LAG_MS))

    def _stop(self, node: SimNode, _dice: Random) -> None:
        """In good order: it asks to be relieved first."""
        self._cluster.trace.add(f"{node.name} wants to stop")
        self._cluster.ask_to_stop(node)

    def _crash(self, node: SimNode, _dice: Random) -> None:
        if self._cluster.may_crash(node):
            node.die()

    def _cut_power(self, node: SimNode, _dice: Random) -> None:
        if self._cluster.may_lose_data(node):
            node.die(power=True)

    def _wipe(self, node: SimNode, _dice: Random) -> None:
        if self._cluster.may_lose_data(node):
            self._cluster.sightings.note("broker came back with an empty disk")
            self._cluster.replace_disk(node)
