"""Changes of many partitions at once, each by the rules of its topic."""

from collections.abc import Callable, Iterable, Iterator

from kraftlog.config import Config
from metadata_log.effective import TopicRules, rules_of
from metadata_log.election import Acceptable
from metadata_log.image import Image
from metadata_log.partition_change import Target, change
from metadata_log.places import Place
from metadata_log.records import PartitionChange, PartitionState

Wish = Callable[[PartitionState, TopicRules], Target | None]
"""What a partition should become; None: nothing."""


def changes_of(
    image: Image,
    places: Iterable[Place],
    wish: Wish,
    acceptable: Acceptable,
    static: Config,
) -> Iterator[PartitionChange]:
    """The changes that make partitions what they should be; partitions that are gone, that are
    so already, or of which nothing is wanted have none.
    """
    rules = rules_of(image, static)
    topic, of_topic = None, None
    for place in places:
        if topic is None or topic.id != place.topic_id:  # places come topic by topic
            topic = image.topics.get(place.topic_id)
            of_topic = rules(topic.name) if topic is not None else None
        if topic is None or of_topic is None or place.partition >= len(topic.partitions):
            continue
        state = topic.partitions[place.partition]
        wanted = wish(state, of_topic)
        if wanted is None:
            continue
        found = change(
            place,
            state,
            wanted,
            acceptable=acceptable,
            min_insync_replicas=of_topic.min_insync_replicas,
        )
        if found is not None:
            yield found


def elect_again(
    image: Image, places: Iterable[Place], acceptable: Acceptable, static: Config
) -> Iterator[PartitionChange]:
    """A record for each of these partitions that had no leader and now gets one."""

    def wish(_state: PartitionState, rules: TopicRules) -> Target:
        return Target(election=rules.election)

    return changes_of(image, places, wish, acceptable, static)
