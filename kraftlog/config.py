"""Reading a configuration: flags win over the environment, that over a file, that over defaults.

    config = load(Scope.BROKER, flags={"log.dirs": "/data"}, environment=os.environ, file="b1.toml")
    config[keys.LOG_DIRS]         ('/data',)
    config.source(keys.LOG_DIRS)  'flag --log.dirs'

In a TOML file dotted keys and tables mean the same; in the environment `log.segment.bytes` is
`KRAFTLOG_LOG_SEGMENT_BYTES`. A key that nobody reads is an error and never ignored: a misspelt
retention is lost data. `topic_config` reads what is set for one topic; what is not set there comes
from the broker's defaults.
"""

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from kraftlog.config_keys import (
    ALL_KEYS,
    ENVIRONMENT_PREFIX,
    Key,
    Scope,
    environment_name,
    shorten,
)
from kraftlog.errors import ConfigError

T = TypeVar("T")

DEFAULT_SOURCE = "default"

# Variables with our prefix that are no configuration keys.
NOT_KEYS = frozenset(
    {"KRAFTLOG_CODEC", "KRAFTLOG_DRILL_HOOKS", "KRAFTLOG_LOG_FORMAT", "KRAFTLOG_RESOLVE"}
)

PROCESSES = (Scope.BROKER, Scope.CONTROLLER, Scope.CLIENT)
GUESS_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """One value, and where it came from."""

    value: object
    source: str


class Config:
    """The values that were set; what was not set has the parent's value, or the default."""

    def __init__(
        self, scope: Scope, settings: Mapping[Key[object], Setting], parent: "Config | None" = None
    ) -> None:
        self.scope = scope
        self._settings = dict(settings)
        self._parent = parent

    def __getitem__(self, key: Key[T]) -> T:
        # A setting is made from what its own key's parse returned, or is its default.
        return cast("T", self.setting(key).value)

    def source(self, key: Key[T]) -> str:
        """Where the value came from: a flag, a variable, a file, a topic, or `default`."""
        return self.setting(key).source

    def setting(self, key: Key[T]) -> Setting:
        own = self._settings.get(cast("Key[object]", key))
        if own is not None:
            return own
        if self._parent is not None:
            return self._parent.setting(key)
        return Setting(key.default, DEFAULT_SOURCE)


def load(
    scope: Scope,
    *,
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    file: str | None = None,
) -> Config:
    """The configuration of one process. ConfigError names the key and where it was given."""
    settings: dict[Key[object], Setting] = {}
    if file is not None:
        settings |= _parse(scope, _flatten(_read_toml(file)), lambda _name: f"file {file}")
    if environment is not None:
        named = _from_environment(scope, environment)
        settings |= _parse(scope, named, lambda name: f"environment {environment_name(name)}")
    if flags is not None:
        settings |= _parse(scope, flags.items(), lambda name: f"flag --{name}")
    return Config(scope, settings)


def topic_config(overrides: Mapping[str, object], *, broker: Config | None = None) -> Config:
    """What is set for one topic, over the defaults of its broker."""
    settings = _parse(Scope.TOPIC, overrides.items(), lambda _name: "topic config")
    return Config(Scope.TOPIC, settings, broker)


def broker_defaults(overrides: Mapping[str, object], *, static: Config) -> Config:
    """What is set for all brokers while they run, over the configuration of one of them."""
    settings = _parse(Scope.BROKER, overrides.items(), lambda _name: "default of all brokers")
    return Config(Scope.BROKER, settings, static)


def explain(name: str) -> str:
    """What a key does, what it may be, its default, and where it can be set."""
    found = [key for key in ALL_KEYS if name in key.names.values()]
    if not found:
        raise ConfigError(
            f"{shorten(name)} is not a configuration key", hint=_guess(name, _names())
        )
    key = found[0]
    lines = [f"{key.name}: {key.doc}", f"  must be {key.value_type.describe()}"]
    lines.append(f"  default {key.default_text}")
    for scope, scope_name in key.names.items():
        where = f" or {environment_name(scope_name)}" if scope is not Scope.TOPIC else ""
        lines.append(f"  {scope.value}: {scope_name}{where}")
    return "\n".join(lines)


def _parse(
    scope: Scope, named: Iterable[tuple[str, object]], source_of: Callable[[str], str]
) -> dict[Key[object], Setting]:
    settings: dict[Key[object], Setting] = {}
    for name, raw in named:
        source = source_of(name)
        key = _key_of(scope, name, source)
        if key in settings:
            raise ConfigError(f"{name} is given twice ({source})", hint="keep one of the two")
        settings[key] = Setting(key.parse(raw, name=name, source=source), source)
    return settings


def _key_of(scope: Scope, name: str, source: str) -> Key[object]:
    for key in ALL_KEYS:
        if key.names.get(scope) == name:
            return key
    raise ConfigError(
        f"{shorten(name)} ({source}) is not a configuration key of a {scope.value}",
        hint=_elsewhere(scope, name) or _guess(name, _names(scope)),
    )


def _elsewhere(scope: Scope, name: str) -> str:
    """What to say of a name that is right in another place."""
    for key in ALL_KEYS:
        for other, other_name in key.names.items():
            if other_name == name:
                here = key.names.get(scope)
                use = f"here it is {here}" if here else f"a {scope.value} does not read it"
                return f"it is a key of a {other.value}; {use}"
    return ""


def _guess(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name[:GUESS_CHARS_MAX].lower(), sorted(known), n=1)
    return f"did you mean {close[0]}?" if close else "remove it: no key has a name like that"


def _names(scope: Scope | None = None) -> set[str]:
    return {
        name
        for key in ALL_KEYS
        for key_scope, name in key.names.items()
        if scope is None or key_scope is scope
    }


def _read_toml(file: str) -> Mapping[str, object]:
    try:
        with open(file, "rb") as opened:
            return tomllib.load(opened)
    except OSError as error:
        raise ConfigError(f"file {file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also what is not UTF-8
        raise ConfigError(
            f"file {file} is not TOML: {error}", hint='lines look like log.dirs = "/data"'
        ) from None


def _flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Tables and dotted keys alike, as dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _from_environment(scope: Scope, environment: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """Our variables by key name, without those that are for another kind of process.

    A supervisor hands one environment to brokers and controllers alike, so each takes its own. A
    variable for nobody, or for a topic, which has no environment, is left in to be refused.
    """
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in NOT_KEYS:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
        if name in _names(scope) or not any(name in _names(other) for other in PROCESSES):
            yield name, text
