"""Configs as people ask for them: every value that holds, and where it comes from."""

from dataclasses import dataclass

from kraftlog.config import DEFAULT_SOURCE, Config
from kraftlog.config_keys import ALL_KEYS, Key, Scope
from kraftlog.errors import UnknownTopicOrPartition
from metadata_log.effective import ALL_BROKERS, BUILT_IN
from metadata_log.image import Image
from metadata_log.records import Resource, ResourceType


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """`source` is topic, broker, cluster, static or default."""

    name: str
    value: str
    source: str


def describe_configs(
    image: Image, resource: Resource, *, static: Config = BUILT_IN
) -> list[ConfigValue]:
    """The values that hold for a topic; of brokers, what is set for them while they run."""
    if resource.type is ResourceType.BROKER:
        return _of_broker(image, resource)
    if image.topic(resource.name) is None:
        raise UnknownTopicOrPartition(f"there is no topic {resource.name!r}")
    named = [key for key in ALL_KEYS if Scope.TOPIC in key.names]
    return [_of_topic(image, resource, key, static) for key in named]


def _of_topic(image: Image, resource: Resource, key: Key[object], static: Config) -> ConfigValue:
    name = key.names[Scope.TOPIC]
    own = image.config(resource).get(name)
    if own is not None:
        return ConfigValue(name, own, "topic")
    of_all = image.config(ALL_BROKERS).get(key.names.get(Scope.BROKER, ""))
    if of_all is not None:
        return ConfigValue(name, of_all, "cluster")
    source = "default" if static.source(key) == DEFAULT_SOURCE else "static"
    return ConfigValue(name, key.value_type.show(static[key]), source)


def _of_broker(image: Image, resource: Resource) -> list[ConfigValue]:
    own, of_all = image.config(resource), image.config(ALL_BROKERS)
    values = {name: ConfigValue(name, value, "cluster") for name, value in of_all.items()}
    if resource != ALL_BROKERS:
        values |= {name: ConfigValue(name, value, "broker") for name, value in own.items()}
    return [values[name] for name in sorted(values)]
