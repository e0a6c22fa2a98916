"""Random histories: brokers come, die and return, with and without their data; topics, ISRs,
configs and reassignments change meanwhile. After each step every rule holds (M5, M6, M7, M9), and
a leader that was elected cleanly has every committed record (P1).
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from metadata_log.delta import advance, diff
from metadata_log.election import Election
from metadata_log.image import EMPTY
from metadata_log.records import FenceCause
from metadata_log.replay import load, replay_all
from metadata_log.snapshot import digest, write_records
from tests.metadata_log.worlds import World

BROKERS = (1, 2, 3, 4)

brokers = st.sampled_from(BROKERS)
topics = st.sampled_from(("a", "a", "a", "b"))  # mostly one, so that it happens to the same ones
numbers = st.sampled_from((0, 0, 0, 1))
replica_lists = st.permutations(BROKERS).flatmap(
    lambda order: st.integers(1, 3).map(lambda count: tuple(order[:count]))
)


class Everything(RuleBasedStateMachine):
    """All that can happen."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.snapshot_at = 0

    @initialize(min_isr=st.integers(1, 2), replicas=st.integers(1, 3))
    def begin(self, min_isr: int, replicas: int) -> None:
        for broker in BROKERS[:3]:
            self.world.come_back(broker)
        self.world.configure("", "min.insync.replicas", str(min_isr))
        self.world.create("a", [BROKERS[:replicas]])

    @rule(broker=brokers)
    def come_back(self, broker: int) -> None:
        self.world.come_back(broker)

    @rule(broker=brokers)
    def come_back_empty(self, broker: int) -> None:
        self.world.come_back_empty(broker)

    @rule(broker=brokers)
    def die(self, broker: int) -> None:
        self.world.die(broker)

    @rule(broker=brokers)
    def start(self, broker: int) -> None:
        self.world.start(broker)

    @rule(broker=brokers)
    def unfence(self, broker: int) -> None:
        self.world.unfence(broker)

    @rule(broker=brokers)
    def kill(self, broker: int) -> None:
        self.world.up.discard(broker)

    @rule(broker=brokers, cause=st.sampled_from(FenceCause))
    def fence(self, broker: int, cause: FenceCause) -> None:
        self.world.fence(broker, cause)

    @rule(broker=brokers)
    def stop(self, broker: int) -> None:
        self.world.stop(broker)

    @rule(broker=brokers)
    def forget(self, broker: int) -> None:
        self.world.forget(broker)

    @rule(name=topics, assignments=st.lists(replica_lists, min_size=1, max_size=3))
    def create(self, name: str, assignments: list[tuple[int, ...]]) -> None:
        self.world.create(name, assignments)

    @rule(name=topics)
    def delete(self, name: str) -> None:
        self.world.delete(name)

    @rule(name=topics, count=st.integers(1, 4))
    def grow(self, name: str, count: int) -> None:
        self.world.grow(name, count)

    @rule(name=topics, number=numbers, goal=st.none() | replica_lists)
    def reassign(self, name: str, number: int, goal: tuple[int, ...] | None) -> None:
        self.world.reassign(name, number, goal)

    @rule(election=st.sampled_from((Election.PREFERRED, Election.UNCLEAN)))
    def elect(self, election: Election) -> None:
        self.world.elect(election)

    @rule()
    def rebalance(self) -> None:
        self.world.rebalance()

    @rule(topic=st.sampled_from(("", "a", "b")), value=st.sampled_from("123"))
    def set_min_isr(self, topic: str, value: str) -> None:
        self.world.configure(topic, "min.insync.replicas", value)

    @rule(topic=topics, value=st.sampled_from(("true", "false")))
    def allow_unclean(self, topic: str, value: str) -> None:
        self.world.configure(topic, "unclean.leader.election.enable", value)

    @rule(broker=brokers)
    def take_producer_ids(self, broker: int) -> None:
        self.world.take_producer_ids(broker)

    @rule(name=topics, number=numbers, fetchers=st.sets(brokers))
    def produce(self, name: str, number: int, fetchers: set[int]) -> None:
        self.world.produce(name, number, fetchers)

    @rule(name=topics, number=numbers, members=st.sets(brokers))
    def alter_isr(self, name: str, number: int, members: set[int]) -> None:
        self.world.alter_isr(name, number, members)

    @invariant()
    def a_snapshot_is_the_image(self) -> None:
        image = self.world.cluster.image
        if image.end_offset < self.snapshot_at:
            return
        self.snapshot_at = image.end_offset + 7
        loaded = load(write_records(image), image.end_offset)
        assert loaded == image
        assert digest(loaded) == digest(image)
        assert diff(image, loaded).is_empty

    def teardown(self) -> None:
        """The log, replayed in one step or many, is the image; so is its first half as a snapshot
        and the rest replayed on top (Q11, KAFKA-14618). Both ways to a delta agree."""
        records = [each.record for each in self.world.cluster.log]
        image = self.world.cluster.image
        assert replay_all(EMPTY, records, 0) == image
        half = len(records) // 2
        first = replay_all(EMPTY, records[:half], 0)
        loaded = load(write_records(first), first.end_offset)
        after, delta = advance(loaded, records[half:], half)
        assert after == image
        wanted = diff(first, image)
        assert delta.topics == wanted.topics
        assert delta.removed_topics == wanted.removed_topics
        assert delta.brokers == wanted.brokers
        assert delta.removed_brokers == wanted.removed_brokers
        assert delta.configs >= wanted.configs


class Failures(RuleBasedStateMachine):
    """One partition, three replicas, a minimum of two, and nothing but trouble."""

    @initialize()
    def begin(self) -> None:
        self.world = World(by_hand=False)
        for broker in (1, 2, 3):
            self.world.come_back(broker)
        self.world.configure("", "min.insync.replicas", "2")
        self.world.create("a", [(1, 2, 3)])
        self.world.produce("a", 0, {1, 2, 3})

    @rule(broker=st.sampled_from((1, 2, 3)))
    def die(self, broker: int) -> None:
        self.world.die(broker)

    @rule(broker=st.sampled_from((1, 2, 3)))
    def come_back(self, broker: int) -> None:
        self.world.come_back(broker)

    @rule(broker=st.sampled_from((1, 2, 3)))
    def come_back_empty(self, broker: int) -> None:
        self.world.come_back_empty(broker)

    @rule(broker=st.sampled_from((1, 2, 3)))
    def stop(self, broker: int) -> None:
        self.world.stop(broker)

    @rule(members=st.sampled_from(({1}, {2}, {3}, {1, 2, 3})))
    def alter_isr(self, members: set[int]) -> None:
        self.world.alter_isr("a", 0, members)

    @rule(fetchers=st.sampled_from(({1, 2}, {1, 3}, {2, 3}, {1, 2, 3})))
    def produce(self, fetchers: set[int]) -> None:
        self.world.produce("a", 0, fetchers)

    @rule(value=st.sampled_from("12"))
    def set_min_isr(self, value: str) -> None:
        self.world.configure("a", "min.insync.replicas", value)

    @rule(goal=st.sampled_from(((1, 4), (4, 2), (3, 2, 1), (2,), None)))
    def reassign(self, goal: tuple[int, ...] | None) -> None:
        self.world.come_back(4)
        self.world.reassign("a", 0, goal)


@pytest.mark.slow
def test_everything() -> None:
    run_state_machine_as_test(Everything, settings=settings(stateful_step_count=30))


@pytest.mark.slow
def test_failures() -> None:
    run_state_machine_as_test(Failures, settings=settings(stateful_step_count=20))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_everything_for_long() -> None:
    run_state_machine_as_test(Everything, settings=settings(stateful_step_count=60))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_failures_for_long() -> None:
    run_state_machine_as_test(Failures, settings=settings(stateful_step_count=40))
