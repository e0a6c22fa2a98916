"""A cluster with data, to which things happen. What makes no sense just now is not done."""

from dataclasses import replace

from kraftlog.errors import KraftError
from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.decide.elections import (
    ElectLeaders,
    elect_leaderless,
    elect_leaders,
    rebalance,
)
from metadata_log.decide.fencing import begin_shutdown, release, unregister
from metadata_log.decide.partitions import AlterPartitions, alter_partitions
from metadata_log.decide.producer_ids import allocate_producer_ids
from metadata_log.decide.reassign import Reassignment, reassign
from metadata_log.decide.requests import with_answer
from metadata_log.decide.topics import (
    CreatePartitions,
    NewPartitions,
    TopicRef,
    create_partitions,
    delete_topics,
)
from metadata_log.effective import ALL_BROKERS
from metadata_log.election import Election
from metadata_log.places import Place
from metadata_log.records import NO_LEADER, FenceCause, Resource, ResourceType
from tests.metadata_log.clusters import WHY, Cluster, Dice, partition, uuid
from tests.metadata_log.replicas import Replicas


class World:
    def __init__(self, *, by_hand: bool = True) -> None:
        self.cluster = Cluster(dice=Dice(1))
        self.replicas = Replicas(by_hand=by_hand)
        self.disks: dict[int, int] = {}
        self.up: set[int] = set()
        self.clean_epochs: dict[int, int] = {}
        self.requests = 0

    def learn(self) -> None:
        """Brokers see the new image, and what it says about leaders comes true."""
        self.replicas.follow(self.cluster.image)

    # -- brokers

    def come_back(self, broker: int) -> None:
        self.start(broker)
        self.unfence(broker)

    def come_back_empty(self, broker: int) -> None:
        """Its disk was replaced."""
        if broker in self.up:
            return
        self.clean_epochs.pop(broker, None)
        self.disks[broker] = self.disks.get(broker, 0) + 1
        self.replicas.wipe(broker)
        self.come_back(broker)

    def die(self, broker: int) -> None:
        if broker in self.up:
            self.up.discard(broker)
            self.cluster.fence(broker)
            self.learn()

    def start(self, broker: int) -> None:
        if broker in self.up:
            return
        before = self.cluster.image.brokers.get(broker)
        epoch = self.clean_epochs.pop(broker, None)
        if epoch is None:
            self.replicas.crash(broker)
        request = replace(
            self.cluster.registration(broker),
            previous_epoch=epoch,
            log_dirs=(uuid(f"disk{broker}", self.disks.get(broker, 0)),),
        )
        self.cluster.registered(request)
        self.up.add(broker)
        self.learn()
        after = self.cluster.image.brokers[broker]
        assert after.is_fenced
        assert before is None or after.epoch > before.epoch  # M6

    def unfence(self, broker: int) -> None:
        registered = self.cluster.image.brokers.get(broker)
        if broker in self.up and registered is not None and registered.is_fenced:
            if registered.fence_cause is FenceCause.OPERATOR:
                self.cluster.decided(release(self.cluster.image, broker, WHY))
            self.cluster.unfence(broker)
            self.learn()

    def fence(self, broker: int, cause: FenceCause) -> None:
        if broker in self.cluster.image.brokers:
            self.cluster.fence(broker, cause)
            self.learn()

    def stop(self, broker: int) -> None:
        """A controlled shutdown, from beginning to end."""
        registered = self.cluster.image.brokers.get(broker)
        if broker not in self.up or registered is None or registered.is_fenced:
            return
        self.cluster.decided(begin_shutdown(self.cluster.image, broker))
        self.learn()
        self.cluster.fence(broker, FenceCause.SHUTDOWN)
        self.replicas.flush(broker)
        self.clean_epochs[broker] = registered.epoch
        self.up.discard(broker)

    def forget(self, broker: int) -> None:
        if broker not in self.up and broker in self.cluster.image.brokers:
            self.cluster.decided(unregister(self.cluster.image, broker))
            self.clean_epochs.pop(broker, None)

    # -- topics

    def create(self, name: str, assignments: list[tuple[int, ...]]) -> None:
        try:
            self.cluster.create(name, *assignments)
        except KraftError:
            assert len(self.cluster.log) == self.cluster.image.end_offset  # M4

    def delete(self, name: str) -> None:
        self.cluster.decided(delete_topics(self.cluster.image, (TopicRef(name=name),)))

    def grow(self, name: str, count: int) -> None:
        request = CreatePartitions((NewPartitions(name, count),))
        image = self.cluster.image
        self.cluster.decided(create_partitions(image, request, draw=self.cluster.dice))

    def reassign(self, name: str, number: int, goal: tuple[int, ...] | None) -> None:
        wish = Reassignment(partition(name, number), goal)
        self.cluster.decided(reassign(self.cluster.image, (wish,)))
        self.learn()

    def elect(self, election: Election) -> None:
        self.cluster.decided(elect_leaders(self.cluster.image, ElectLeaders(election, None)))
        self.learn()

    def rebalance(self) -> None:
        self.cluster.decided(rebalance(self.cluster.image))
        self.learn()
        self.cluster.decided(elect_leaderless(self.cluster.image, WHY))
        self.learn()

    def configure(self, topic: str, name: str, value: str) -> None:
        """For a topic, or without one for all."""
        resource = Resource(ResourceType.TOPIC, topic) if topic else ALL_BROKERS
        change = ResourceChanges(resource, (ConfigChange(name, Operation.SET, value),))
        self.cluster.decided(alter_configs(self.cluster.image, AlterConfigs((change,))))

    def take_producer_ids(self, broker: int) -> None:
        registered = self.cluster.image.brokers.get(broker)
        if registered is not None:
            self.requests += 1
            decision = allocate_producer_ids(self.cluster.image, broker, registered.epoch)
            self.cluster.decided(with_answer(decision, b"client", self.requests, b"block"))

    # -- data

    def produce(self, name: str, number: int, fetchers: set[int]) -> None:
        """One record, which these brokers fetch if they are there."""
        place = self.led_by_live(name, number)
        if place is None:
            return
        state = self.cluster.image.at(place)
        self.replicas.append(place, state)
        for broker in fetchers & self.up & set(state.replicas):
            self.replicas.fetch(place, state, broker)
        self.replicas.commit(self.cluster.image, place)

    def alter_isr(self, name: str, number: int, members: set[int]) -> None:
        """A leader keeps whom it has, and takes in whoever has everything, as it believes also
        those that the controller knows to be gone."""
        place = self.led_by_live(name, number)
        if place is None:
            return
        state = self.cluster.image.at(place)
        fit = {broker for broker in members & set(state.replicas) if self.fits(place, broker)}
        change = self.cluster.isr_change(name, *sorted({state.leader, *fit}), partition=number)
        epoch = self.cluster.image.brokers[state.leader].epoch
        request = AlterPartitions(state.leader, epoch, (change,))
        self.cluster.decided(alter_partitions(self.cluster.image, request))
        self.learn()

    def fits(self, place: Place, broker: int) -> bool:
        state = self.cluster.image.at(place)
        return broker in state.isr or self.replicas.in_sync(place, state, broker)

    def led_by_live(self, name: str, number: int) -> Place | None:
        topic = self.cluster.image.topic(name)
        if topic is None or number >= len(topic.partitions):
            return None
        leader = topic.partitions[number].leader
        alive = leader != NO_LEADER and leader in self.up
        return Place(topic.id, number) if alive else None
