"""Whether a set of configs, taken as a whole, is one that brokers can live with.

It is asked before anything is written: a wrong value in the log would be met by every broker.
"""

from collections.abc import Mapping

from kraftlog.broker_keys import LIVE_NAMES
from kraftlog.config import topic_config
from kraftlog.config_keys import ALL_KEYS, Key, Scope, shorten
from kraftlog.config_types import NameSet, ThrottledReplicas
from kraftlog.errors import ConfigError
from storage.log_config import LogConfig


def check_topic_config(values: Mapping[str, str]) -> None:
    """ConfigError unless all of these may be set for one topic together."""
    LogConfig.from_config(topic_config(values))


def check_broker_config(values: Mapping[str, str], *, of_one: bool = False) -> None:
    """ConfigError unless all of these may be set for brokers while they run, together: defaults
    for their topics. What a broker reads once, when it starts, is in its own configuration.

    `of_one`: for one broker by itself. The leader of a partition may be any broker, so a default
    of its topics has one value for all of them.
    """
    topic_values: dict[str, object] = {}
    for name, value in values.items():
        key = _of_brokers(name)
        if of_one and name not in LIVE_NAMES:
            raise ConfigError(
                f"{name} cannot differ between brokers", hint="set it for all brokers"
            )
        key.parse(value, name=name, source="broker config")
        if Scope.TOPIC in key.names:
            topic_values[key.names[Scope.TOPIC]] = value
    LogConfig.from_config(topic_config(topic_values))


def members(scope: Scope, name: str, value: str | None) -> list[str] | None:
    """The members of a list, where there is no value those of its default; None: it is no list."""
    for key in ALL_KEYS:
        value_type: object = key.value_type
        is_list = isinstance(value_type, NameSet | ThrottledReplicas)
        if key.names.get(scope) == name and is_list:
            text = key.default_text if value is None else value
            return [part for part in text.split(",") if part not in ("", "none")]
    return None


def _of_brokers(name: str) -> Key[object]:
    for key in ALL_KEYS:
        is_live = Scope.TOPIC in key.names or name in LIVE_NAMES
        if key.names.get(Scope.BROKER) == name and is_live:
            return key
    if any(key.names.get(Scope.BROKER) == name for key in ALL_KEYS):
        raise ConfigError(
            f"{name} is read once, when a broker starts",
            hint="set it in the broker's own configuration and restart it",
        )
    raise ConfigError(f"{shorten(name)} is not a configuration key of a broker")
