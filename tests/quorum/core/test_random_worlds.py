"""Small worlds in which hypothesis decides what happens next: crashes, lost and doubled messages,
cuts, slow disks, changes of voters. The rules of tests/quorum/core/rules.py hold all the while; at
the end all faults are over, and the quorum has to go on and become one.
"""

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quorum.core.config import FAST
from quorum.core.messages import AddVoterRequest, RemoveVoterRequest
from quorum.core.state import Leader, Unattached
from tests.quorum.core.cluster import CLUSTER_ID, Cluster, key_of, voter_of
from tests.quorum.core.world import Node

VOTERS, OBSERVERS = 3, 1
NODES = st.integers(1, VOTERS + OBSERVERS)
WIRE_MAX = 40


class Worlds(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.dice = 0
        self.cluster = Cluster(
            VOTERS, OBSERVERS, timing=FAST, draw=self._draw, auto_flush=False, fetch_bytes_max=40
        )
        self.proposed = 0

    def _draw(self, node_id: int, n: int) -> int:
        """Different for every node and every time, and the same on every run."""
        self.dice += 1
        return (self.dice * 7_919 + node_id * 104_729) % n

    def _leader(self, node_id: int) -> Node | None:
        node = self.cluster.nodes[node_id]
        return node if node.alive and node.core.is_leader else None

    # -- time

    @rule(node_id=NODES)
    def wake(self, node_id: int) -> None:
        """Time passes until this node wants to be woken; the others oversleep."""
        node = self.cluster.nodes[node_id]
        if node.alive:
            self.cluster.now_ms = max(self.cluster.now_ms, node.core.wake_at_ms)
            self.cluster.tick(node_id)

    @rule(ms=st.sampled_from([20, 200, 700]))
    def calm(self, ms: int) -> None:
        """All goes well for a while, but for what is cut or dead."""
        self.cluster.auto_flush = True
        for node in self.cluster.alive:
            self.cluster.finish_flush(node.node_id)
        self.cluster.run(ms)
        self.cluster.auto_flush = False

    @rule(node_id=NODES)
    def finish_flush(self, node_id: int) -> None:
        if self.cluster.nodes[node_id].alive:
            self.cluster.finish_flush(node_id)

    # -- the wire

    @precondition(lambda self: self.cluster.wire)
    @rule(index=st.integers(0, WIRE_MAX), times=st.integers(1, 5))
    def deliver(self, index: int, times: int) -> None:
        for _ in range(times):
            if self.cluster.wire:
                self.cluster.deliver(index % len(self.cluster.wire))

    @precondition(lambda self: self.cluster.wire)
    @rule(index=st.integers(0, WIRE_MAX))
    def lose(self, index: int) -> None:
        packet = self.cluster.lose(index % len(self.cluster.wire))
        if not packet.is_reply and self.cluster.nodes[packet.source].life == packet.life:
            self.cluster.fail(packet.source, packet.request_id)

    @precondition(lambda self: self.cluster.wire)
    @rule(index=st.integers(0, WIRE_MAX))
    def repeat(self, index: int) -> None:
        wire = self.cluster.wire
        wire.append(replace(wire[index % len(wire)]))

    @precondition(lambda self: not self.cluster.cuts)
    @rule(node_id=NODES)
    def cut(self, node_id: int) -> None:
        self.cluster.cut(node_id)

    @precondition(lambda self: not self.cluster.cuts)
    @rule(deaf=NODES, mute=NODES)
    def cut_one_way(self, deaf: int, mute: int) -> None:
        self.cluster.cut_way(mute, deaf)

    @precondition(lambda self: self.cluster.cuts)
    @rule()
    def heal(self) -> None:
        self.cluster.heal()

    # -- nodes

    @rule(node_id=NODES)
    def crash(self, node_id: int) -> None:
        if self.cluster.nodes[node_id].alive:
            self.cluster.crash(node_id)

    @rule(node_id=NODES)
    def restart(self, node_id: int) -> None:
        if not self.cluster.nodes[node_id].alive:
            self.cluster.restart(node_id)

    # -- clients and operators

    @rule(node_id=NODES, values=st.integers(1, 3))
    def propose(self, node_id: int, values: int) -> None:
        if self._leader(node_id):
            self.proposed += values
            texts = [f"value {self.proposed - number}" for number in range(values)]
            self.cluster.propose(*texts, at=node_id)

    @rule(node_id=NODES)
    def read(self, node_id: int) -> None:
        if self._leader(node_id):
            self.cluster.read(node_id)

    @rule(node_id=NODES)
    def resign(self, node_id: int) -> None:
        if self._leader(node_id):
            self.cluster.resign(node_id)

    @rule(leader_id=NODES, node_id=NODES)
    def add_voter(self, leader_id: int, node_id: int) -> None:
        if self._leader(leader_id):
            request = AddVoterRequest(cluster_id=CLUSTER_ID, voter=voter_of(node_id))
            self.cluster.ask(leader_id, request)

    @rule(leader_id=NODES, node_id=NODES)
    def remove_voter(self, leader_id: int, node_id: int) -> None:
        if self._leader(leader_id):
            request = RemoveVoterRequest(cluster_id=CLUSTER_ID, key=key_of(node_id))
            self.cluster.ask(leader_id, request)

    @rule(node_id=NODES, drop=st.booleans())
    def snapshot(self, node_id: int, drop: bool) -> None:
        node = self.cluster.nodes[node_id]
        if node.alive and node.core.high_watermark > node.core.log.start_offset:
            snapshot = self.cluster.snapshot(node_id)
            if drop:
                self.cluster.drop_log(node_id, snapshot)

    # -- what always holds

    @invariant()
    def one_leader_per_epoch(self) -> None:
        # Q1
        epochs = [node.core.epoch for node in self.cluster.leaders]
        assert len(epochs) == len(set(epochs))

    @invariant()
    def committed_is_flushed_and_the_same_everywhere(self) -> None:
        # Q6, Q7
        for node in self.cluster.alive:
            end = node.core.high_watermark
            assert node.disk.digest_at(end) == self.cluster.rules.committed[end]

    @invariant()
    def observers_wait(self) -> None:
        # KAFKA-17067: whoever was never a voter never asks for votes.
        node = self.cluster.nodes[VOTERS + OBSERVERS]
        known = [entry.voters for entry in node.core.log.voter_history]
        if node.alive and not any(key_of(node.node_id) in voters for voters in known):
            assert type(node.role).__name__ in ("Unattached", "Follower")

    def teardown(self) -> None:
        """V1, V2: once all is well there is a leader, it commits, and all logs become one."""
        cluster = self.cluster
        cluster.heal()
        cluster.auto_flush = True
        for node in list(cluster.nodes.values()):
            cluster.finish_flush(node.node_id) if node.alive else cluster.restart(node.node_id)
        cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
        cluster.run(1_000)
        cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
        end = cluster.propose("the end") + 1
        cluster.until(lambda: all(node.core.high_watermark >= end for node in cluster.alive))
        digests = {node.disk.digest_at(end) for node in cluster.alive}
        assert len(digests) == 1
        assert len(cluster.leaders) == 1
        assert not [node for node in cluster.alive if isinstance(node.role, Unattached)]
        assert isinstance(cluster.leader.role, Leader)


Worlds.TestCase.settings = settings(
    stateful_step_count=60,
    max_examples=max(10, settings().max_examples // 2),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestWorlds = Worlds.TestCase
