"""Which value of a config holds for a topic.

The topic's own, else what is set for all brokers, else the process's own configuration, which has
the built-in default at its end. Values in the image were checked before they were written.

`min.insync.replicas` is never taken from a process's own configuration: controller and leaders must
agree on it, or a member of the ELR could lack a committed record. What the first controller was
configured with is written into the log when the cluster begins (`decide.bootstrap`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kraftlog import config_keys as keys
from kraftlog.config import Config
from kraftlog.config_keys import Key, Scope
from metadata_log.election import Election
from metadata_log.image import Image
from metadata_log.records import Resource, ResourceType

T = TypeVar("T")

ALL_BROKERS = Resource(ResourceType.BROKER, "")

BUILT_IN = Config(Scope.CONTROLLER, {})
"""A configuration in which nothing is set."""


def topic_value(image: Image, topic: str, key: Key[T], static: Config = BUILT_IN) -> T:
    """The value of a topic's config that holds where `static` is the process's configuration."""
    own = image.topic_config(topic).get(key.names[Scope.TOPIC])
    if own is not None:
        return key.parse(own)
    of_all = image.config(ALL_BROKERS).get(key.names.get(Scope.BROKER, ""))
    if of_all is not None:
        return key.parse(of_all)
    return static[key]


def min_isr(image: Image, topic: str, replication_factor: int) -> int:
    """How many replicas must be in sync for acks=all; never more than there are replicas."""
    return min(topic_value(image, topic, keys.MIN_INSYNC_REPLICAS), replication_factor)


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What an election has to know about a topic."""

    name: str
    min_insync_replicas: int
    unclean: bool
    """Whether any live replica may lead where nobody is in sync."""
    flush_before_ack: bool

    @property
    def election(self) -> Election:
        """How a leader is found when one is missing."""
        return Election.UNCLEAN if self.unclean else Election.ONLINE


def rules_of(image: Image, static: Config) -> Callable[[str], TopicRules]:
    """The rules of each topic of this image, each looked up once."""
    known: dict[str, TopicRules] = {}

    def rules(topic: str) -> TopicRules:
        found = known.get(topic)
        if found is None:
            found = known[topic] = TopicRules(
                topic,
                topic_value(image, topic, keys.MIN_INSYNC_REPLICAS),
                topic_value(image, topic, keys.UNCLEAN_LEADER_ELECTION_ENABLE, static),
                topic_value(image, topic, keys.FLUSH_BEFORE_ACK, static),
            )
        return found

    return rules
