"""A world of three replicas and a controller in which anything happens that can: messages are lost,
repeated and reordered, brokers crash, lose records, are fenced and elected.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from brokers.cluster import NO_LEADER
from tests.brokers.walk import Walk
from tests.brokers.world import LAG_MS, REPLICAS, World

brokers = st.sampled_from(REPLICAS)
picks = st.integers(0, 1_000)


class PartitionMachine(RuleBasedStateMachine):
    """P1 P2 P3 P4 P5 P7 P9 P11 under loss, repetition and reordering of every message."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(broker=brokers)
    def apply_metadata(self, broker: int) -> None:
        self.world.apply_next(broker)

    @rule(broker=brokers, count=st.integers(1, 3))
    def produce(self, broker: int, count: int) -> None:
        for _ in range(count):
            self.world.produce(broker)

    @rule(broker=brokers)
    def fetch(self, broker: int) -> None:
        self.world.fetch(broker)

    @rule(broker=brokers)
    def follow_for_a_while(self, broker: int) -> None:
        """Two whole rounds: what usually happens, or nothing would ever get far."""
        for _ in range(2):
            self.world.fetch(broker)
            for _ in range(2):
                if self.world.bag:
                    self.world.deliver(self.world.bag.pop())

    @precondition(lambda self: self.world.bag)
    @rule(pick=picks)
    def deliver(self, pick: int) -> None:
        self.world.deliver(self.world.bag.pop(pick % len(self.world.bag)))

    @precondition(lambda self: self.world.bag)
    @rule(pick=picks)
    def deliver_and_keep(self, pick: int) -> None:
        self.world.deliver(self.world.bag[pick % len(self.world.bag)])

    @precondition(lambda self: self.world.bag)
    @rule(pick=picks)
    def drop(self, pick: int) -> None:
        self.world.bag.pop(pick % len(self.world.bag))

    @rule(broker=brokers)
    def resend(self, broker: int) -> None:
        self.world.resend(broker)

    @rule(broker=brokers, ms=st.sampled_from([1, LAG_MS // 2, LAG_MS + 1]))
    def check(self, broker: int, ms: int) -> None:
        self.world.now_ms += ms
        self.world.check(broker)

    @rule(broker=brokers)
    def fence(self, broker: int) -> None:
        if not self.world.controller.now.brokers[broker].fenced:
            self.world.controller.fence(broker)

    @rule(broker=brokers)
    def unfence(self, broker: int) -> None:
        self.world.unfence(broker)

    @rule(broker=brokers)
    def elect(self, broker: int) -> None:
        self.world.elect(broker)

    @rule(broker=brokers)
    def crash(self, broker: int) -> None:
        self.world.crash(broker)

    @rule(broker=brokers, lost=st.integers(0, 3))
    def restart(self, broker: int, lost: int) -> None:
        if not self.world.replicas[broker].alive:
            self.world.restart(broker, lost=lost)

    @invariant()
    def hold(self) -> None:
        self.world.check_invariants()

    def teardown(self) -> None:
        """Whatever happened, they all come together again, and records are acknowledged (V2)."""
        world = self.world
        world.heal()
        leader = world.now_assigned.leader
        assert leader != NO_LEADER
        before = len(world.acked)
        assert world.produce(leader)
        world.heal()
        assert len(world.acked) > before
        ends = {tuple(replica.log.records) for replica in world.replicas.values()}
        assert len(ends) == 1
        assert set(world.now_assigned.isr) == set(REPLICAS)


TestPartitionMachine = PartitionMachine.TestCase
TestPartitionMachine.settings = settings(stateful_step_count=50)


SEEDS = 60


@pytest.mark.parametrize("seed", range(0, SEEDS, 10))
def test_long_walks(seed: int) -> None:
    """P1 P2 P3 P4 P5 P7 P9 V2, deep into histories that no example reaches."""
    for each in range(seed, seed + 10):
        Walk(each).run(250)


@pytest.mark.soak
def test_many_long_walks() -> None:
    for seed in range(SEEDS, 3_000):
        Walk(seed).run(400)
