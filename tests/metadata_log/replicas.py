"""The data behind the metadata, as numbers: how many records each replica has, and how many are
committed. Enough to see whether a leader that was elected cleanly has every committed record.
"""

from metadata_log.effective import min_isr
from metadata_log.image import Image
from metadata_log.places import Place
from metadata_log.records import NO_LEADER, PartitionState, Recovery


class Replicas:
    def __init__(self, *, by_hand: bool) -> None:
        self.by_hand = by_hand
        """Whether somebody may have asked for an unclean election."""
        self.wiped: set[tuple[Place, int]] = set()
        self.logs: dict[tuple[Place, int], int] = {}
        self.flushed: dict[tuple[Place, int], int] = {}
        self.committed: dict[Place, int] = {}
        self.leaders: dict[Place, tuple[int, int]] = {}

    def log(self, place: Place, broker: int) -> int:
        return self.logs.get((place, broker), 0)

    def follow(self, image: Image) -> None:
        """Leaders changed: everybody takes over the new leader's log."""
        for topic in image.topics.values():
            for partition, state in enumerate(topic.partitions):
                place = Place(topic.id, partition)
                now = (state.leader, state.leader_epoch)
                if state.leader != NO_LEADER and self.leaders.get(place) != now:
                    self.leaders[place] = now
                    self._take_over(place, state)

    def _take_over(self, place: Place, state: PartitionState) -> None:
        end = self.log(place, state.leader)
        if state.recovery is Recovery.RECOVERED:
            have = (self.committed.get(place, 0), end)
            assert have[0] <= have[1], f"{place} {state}: committed, in the leader's log: {have}"
        if (place, state.leader) in self.wiped and len(state.replicas) > 1 and not self.by_hand:
            assert not self.committed.get(place, 0), f"{place} {state}: led by an empty disk"
        # After an unclean election what the leader lacks is lost, and everybody knows it.
        self.committed[place] = min(self.committed.get(place, 0), end)
        for replica in state.replicas:
            self.logs[place, replica] = min(self.log(place, replica), end)
            self.flushed[place, replica] = min(self.flushed.get((place, replica), 0), end)

    def append(self, place: Place, state: PartitionState) -> None:
        self.logs[place, state.leader] = self.log(place, state.leader) + 1

    def fetch(self, place: Place, state: PartitionState, broker: int) -> None:
        self.logs[place, broker] = self.log(place, state.leader)
        self.wiped.discard((place, broker))

    def flush(self, broker: int) -> None:
        for (place, owner), end in self.logs.items():
            if owner == broker:
                self.flushed[place, owner] = end

    def crash(self, broker: int) -> None:
        """What was not flushed is gone."""
        for place, owner in list(self.logs):
            if owner == broker:
                self.logs[place, owner] = self.flushed.get((place, owner), 0)

    def wipe(self, broker: int) -> None:
        """Another disk is in its place."""
        for place, owner in list(self.logs):
            if owner == broker:
                self.logs[place, owner] = self.flushed[place, owner] = 0
                self.wiped.add((place, owner))

    def commit(self, image: Image, place: Place) -> None:
        """The high watermark moves, if enough replicas are in sync."""
        state = image.at(place)
        topic = image.topics[place.topic_id].name
        if len(state.isr) >= min_isr(image, topic, len(state.replicas)):
            ends = [self.log(place, broker) for broker in state.isr]
            self.committed[place] = max(self.committed.get(place, 0), min(ends))

    def in_sync(self, place: Place, state: PartitionState, broker: int) -> bool:
        """Whether it may join the ISR: at the leader's end is more than is asked, and simple."""
        return self.log(place, broker) >= self.log(place, state.leader)
