"""One run: a safety phase in which all may break, then a liveness phase in which it must heal."""

from chaos.sim.atlas import Atlas
from chaos.sim.clients import Clients, Workload
from chaos.sim.cluster import Cluster
from chaos.sim.faults import Faults
from chaos.sim.liveness import EVENTS_MAX, PROGRESS_MS, SETTLE_MS, STABLE_MS, Liveness
from chaos.sim.operators import Operators
from chaos.sim.options import Options
from kraftlog._check import invariant


class World:
    """`run` returns when all is well, and raises where a rule is broken."""

    def __init__(
        self, seed: int, options: Options | None = None, *, live_trace: bool = False
    ) -> None:
        self.options = options or Options.swarm(seed)
        self.cluster = self.make_cluster(seed, live_trace=live_trace)
        atlas = Atlas(self.cluster)
        self._operators = Operators(self.cluster, atlas)
        self._faults = Faults(self.cluster, atlas, self._operators)
        self._clients = self.make_clients()
        self._liveness = self.make_liveness(atlas, self._faults, self._clients)
        self.progress_ms = 0.0

    # -- what kind of world it is

    def make_cluster(self, seed: int, *, live_trace: bool) -> Cluster:
        return Cluster(seed, self.options, live_trace=live_trace)

    def make_clients(self) -> Workload:
        return Clients(self.cluster)

    def make_liveness(self, atlas: Atlas, faults: Faults, clients: Workload) -> Liveness:
        return Liveness(self.cluster, atlas, faults, clients)

    # -- its course

    def run(self) -> None:
        self.cluster.start()
        self._operators.begin()
        self._faults.begin()
        self._clients.begin()
        self._run_until(self.options.safety_ms)
        self._demand_progress()

    def _run_until(self, end_ms: float) -> None:
        while self.cluster.schedule.is_due(end_ms):
            self._step()

    def _step(self) -> None:
        schedule = self.cluster.schedule
        schedule.step()
        self._clients.judge()
        invariant(schedule.events < EVENTS_MAX, "V3 a storm of events", now=schedule.now)

    def _demand_progress(self) -> None:
        liveness, schedule = self._liveness, self.cluster.schedule
        liveness.heal()
        begin = schedule.now
        deadline = begin + PROGRESS_MS
        while not liveness.has_progressed():
            if not schedule.is_due(deadline):
                core = [node.name for node in liveness.core]
                invariant(liveness.bring_back(), "V1 no progress after healing", core=core)
                deadline = schedule.now + PROGRESS_MS
            self._step()
        self.progress_ms = schedule.now - begin
        self._operators.end()
        liveness.disturb()
        self._run_until(schedule.now + STABLE_MS)
        self._settle()
        liveness.check_end()

    def _settle(self) -> None:
        """What is on its way when the time is up arrives yet."""
        end = self.cluster.schedule.now + SETTLE_MS
        while not self._liveness.has_settled() and self.cluster.schedule.is_due(end):
            self._step()
