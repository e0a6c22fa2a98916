"""After the faults: a majority that is up and connected must get on (V1 to V4).

Half of the time everything heals. Otherwise only a core heals, which holds a majority of every
voter set that may act, and the rest stays as bad as it can be: down, paused, deaf, or mute.

Such a majority may have nobody who could win by Raft's own rules: a follower has heard of a new
voter from a leader that is gone, and needs its vote; the new voter has not, but has fetched from a
later leader, so it refuses, and knows of no reason to campaign itself. Then the rest comes back.
"""

from chaos.sim.atlas import Atlas
from chaos.sim.clients import Workload
from chaos.sim.cluster import Cluster
from chaos.sim.faults import Faults
from chaos.sim.node import SimNode
from kraftlog._check import invariant
from quorum.core.config import FAST
from quorum.core.tally import majority

PROGRESS_MS = 20_000.0
"""Within this time there is a leader, a new commit, and everybody of the core has it."""
PROPOSE_MS = 500.0
STABLE_MS = 3_000.0
"""So long nobody may be disturbed afterwards."""
SETTLE_MS = 3_000.0
"""And so long what is still on its way may take."""
ANSWER_MS = 2.0 * FAST.request_timeout_ms
EVENTS_MAX = 400_000


class Liveness:
    def __init__(self, cluster: Cluster, atlas: Atlas, faults: Faults, clients: Workload) -> None:
        self._cluster = cluster
        self._atlas = atlas
        self._faults = faults
        self._clients = clients
        self._dice = cluster.dice("liveness")
        self._values: set[bytes] = set()
        self._next_try = 0.0
        self._outside: set[int] = set()
        self._leader: tuple[SimNode | None, int] = (None, -1)

    def heal(self) -> None:
        """End the faults for the core."""
        self._faults.end()
        self._clients.end()
        outside = self._choose_outside() if self._dice.random() < 0.5 else []
        self._outside = {node.node_id for node in outside}
        for node in outside:
            self._spoil(node)
        for node in self.core:
            if not node.is_up:
                node.start()

    def bring_back(self) -> bool:
        """If nobody of the core could win, the rest is needed, too; returns whether that is so."""
        if not self._outside or any(map(self._could_win, self.core)):
            return False
        self._cluster.trace.add("nobody could win without the rest: it comes back")
        self._cluster.stays_down -= self._outside
        self._outside = set()
        self._faults.end()
        for node in self.core:
            if not node.is_up:
                node.start()
        return True

    def _could_win(self, node: SimNode) -> bool:
        core = node.core
        if core is None or not any(node.key in each.voters for each in core.log.voter_history):
            return False
        mine = core.log.position
        backers = {
            other.key
            for other in self.core
            if other.core and not mine.is_behind(other.core.log.position)
        }
        return sum(key in backers for key in core.voters.keys) >= majority(len(core.voters))

    def _choose_outside(self) -> list[SimNode]:
        outside: list[SimNode] = []
        nodes = list(self._cluster.nodes)
        self._dice.shuffle(nodes)
        for node in nodes:
            keys = {each.key for each in (*outside, node)}
            if self._dice.random() < 0.5 and self._atlas.may_lose(*keys):
                outside.append(node)
        return outside

    def _spoil(self, node: SimNode) -> None:
        fate = self._dice.choice(("down", "paused", "deaf", "mute"))
        self._cluster.trace.add(f"{node.name} stays {fate}")
        match fate:
            case "down":
                self._cluster.stays_down.add(node.node_id)
                if node.is_up:
                    node.die()
            case "paused":
                node.paused = True
            case _:
                others = [each for each in self._cluster.nodes if each is not node]
                self._silence(node, others, hears=fate == "mute", speaks=fate == "deaf")

    def _silence(self, node: SimNode, others: list[SimNode], *, hears: bool, speaks: bool) -> None:
        links = [(each.node_id, node.node_id) for each in others if not hears]
        links += [(node.node_id, each.node_id) for each in others if not speaks]
        self._cluster.network.block(links)

    @property
    def core(self) -> list[SimNode]:
        return [node for node in self._cluster.nodes if node.node_id not in self._outside]

    # -- progress

    def has_progressed(self) -> bool:
        """V1, V2. Until then somebody keeps proposing."""
        done = self._values & self._clients.acked
        if not done and self._cluster.schedule.now >= self._next_try:
            self._next_try = self._cluster.schedule.now + PROPOSE_MS
            for leader in self._cluster.leaders:
                self._values.update(self._clients.propose(leader))
        return bool(done) and all(map(self._has_all, self.core))

    def _has_all(self, node: SimNode) -> bool:
        end = self._cluster.checker.ledger.end
        return node.driver is not None and node.driver.applier.applied_offset >= end

    def has_settled(self) -> bool:
        """Nothing is on its way any more that would change a state."""
        return True

    def disturb(self) -> None:
        """Cut one more voter off, from the leader or from all, if a majority is left without it."""
        leader = self._cluster.leader
        self._leader = (leader, leader.core.epoch if leader and leader.core else -1)
        lost = [node.key for node in self._cluster.nodes if node.node_id in self._outside]
        victims = [
            node
            for node in self.core
            if leader and node is not leader and self._atlas.may_lose(node.key, *lost)
        ]
        if leader and victims:
            victim = self._dice.choice(victims)
            hears, speaks = self._dice.choice(((False, False), (True, False), (False, True)))
            cores = [each for each in self.core if each is not victim]
            others = self._dice.choice(([leader], cores))
            self._cluster.trace.add(f"{victim.name} is cut off", [each.name for each in others])
            self._silence(victim, others, hears=hears, speaks=speaks)
            self._outside.add(victim.node_id)

    def check_end(self) -> None:
        """V4: nobody disturbed the leader since. V3: nobody waits for an answer. V2: all same."""
        leader = self._cluster.leader
        now = (leader, leader.core.epoch if leader and leader.core else -1)
        names = [node.name if node else "" for node, _ in (self._leader, now)]
        invariant(now == self._leader, "V4 disturbed", epoch=now[1], leaders=names)
        for node in self.core:
            age_ms = self._cluster.schedule.now - node.unanswered_since()
            invariant(age_ms <= ANSWER_MS, "V3 a request without an answer", node=node.name)
            invariant(not node.open_operations, "V3 a client without an answer", node=node.name)
            self._cluster.checker.check_converged(node)
        self._clients.check_end()
