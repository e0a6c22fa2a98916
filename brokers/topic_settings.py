"""What holds for each topic: its own configs, over those of all brokers, over this broker's own.

Values in the metadata log were checked before they were written, by a controller that may be newer
than this broker. One that makes no sense here is left out and reported: it must not stop a broker.
"""

import logging
from collections.abc import Callable, Mapping

from brokers.settings import ReplicationRates, TopicSettings
from kraftlog import broker_keys
from kraftlog import config_keys as keys
from kraftlog.config import Config, broker_defaults, topic_config
from kraftlog.config_keys import Key
from kraftlog.errors import ConfigError
from metadata_log.effective import ALL_BROKERS, topic_value
from metadata_log.image import Image
from metadata_log.records import Resource, ResourceType
from storage.log_config import LogConfig

logger = logging.getLogger(__name__)

Values = Mapping[str, str]


class SettingsBook:
    """The settings of topics. What did not change since they were made is not made again."""

    def __init__(self, static: Config) -> None:
        self._static = static
        self._of_all: tuple[Values, Config] | None = None
        self._plain: TopicSettings | None = None
        self._known: dict[str, tuple[Values, TopicSettings]] = {}
        self.refused = 0
        """How often something could not be used."""

    def settings(self, image: Image, topic: str) -> TopicSettings:
        defaults = self._defaults(image)
        own: Values = image.topic_config(topic)
        if not own and self._plain is not None:
            return self._plain
        known = self._known.get(topic)
        if known is not None and known[0] is own:
            return known[1]
        made = self._make(image, topic, defaults)
        if own:
            self._known[topic] = (own, made)
        else:
            self._plain = made
        return made

    def rates(self, image: Image, broker_id: int) -> ReplicationRates:
        """What is set for this broker, over what is for all brokers, over its own configuration."""
        one: Values = image.config(Resource(ResourceType.BROKER, str(broker_id)))
        of_one = self._usable(one, lambda some: broker_defaults(some, static=self._defaults(image)))
        return ReplicationRates(
            _rate(of_one, broker_keys.LEADER_REPLICATION_THROTTLED_RATE),
            _rate(of_one, broker_keys.FOLLOWER_REPLICATION_THROTTLED_RATE),
        )

    def forget(self, topic: str) -> None:
        """The topic is gone."""
        self._known.pop(topic, None)

    def _defaults(self, image: Image) -> Config:
        of_all: Values = image.config(ALL_BROKERS)
        if self._of_all is None or self._of_all[0] is not of_all:
            layer = self._usable(of_all, lambda some: broker_defaults(some, static=self._static))
            self._of_all = (of_all, layer)
            self._plain = None
            self._known.clear()
        return self._of_all[1]

    def _make(self, image: Image, topic: str, defaults: Config) -> TopicSettings:
        config = self._usable(
            image.topic_config(topic), lambda some: topic_config(some, broker=defaults)
        )
        try:
            return _topic_settings(image, topic, config)
        except ConfigError as error:
            self._complain(f"topic {topic} keeps the defaults: {error}")
            return _topic_settings(image, topic, defaults)

    def _usable(self, values: Values, make: Callable[[Mapping[str, object]], Config]) -> Config:
        """A configuration of those values that make sense here."""
        try:
            return make(dict(values.items()))
        except ConfigError:
            usable: dict[str, object] = {}
            for name, value in values.items():
                try:
                    make({name: value})
                except ConfigError as error:
                    self._complain(f"a config in the metadata log is left out: {error}")
                else:
                    usable[name] = value
            return make(usable)

    def _complain(self, text: str) -> None:
        self.refused += 1
        logger.error(text)


def _rate(config: Config, key: Key[int]) -> int | None:
    return None if config[key] == key.default else config[key]


def _topic_settings(image: Image, topic: str, config: Config) -> TopicSettings:
    return TopicSettings(
        log=LogConfig.from_config(config),
        # Never from this broker's own configuration: controller and leaders must agree on it.
        min_insync_replicas=topic_value(image, topic, keys.MIN_INSYNC_REPLICAS),
        flush_before_ack=config[keys.FLUSH_BEFORE_ACK],
        leader_throttled=config[keys.LEADER_REPLICATION_THROTTLED_REPLICAS],
        follower_throttled=config[keys.FOLLOWER_REPLICATION_THROTTLED_REPLICAS],
    )
