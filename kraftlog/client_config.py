"""What a client is told: keyword arguments, and Kafka's dotted names in `config`.

    Producer("b1:19101", linger="20ms", config={"batch.size": 65536})

Both mean the same keys (`kraftlog.client_keys`). A name that nobody reads is an error with the name
that was perhaps meant; what is planned but not there yet is refused by name.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypedDict, TypeVar, cast

from kraftlog import client_keys as keys
from kraftlog.config_key import Key, Scope, shorten
from kraftlog.config_types import DurationMs
from kraftlog.durations import Duration, to_ms
from kraftlog.errors import ConfigError, NotYetSupported
from kraftlog.retry import Backoff

T = TypeVar("T")

COMMON: dict[str, Key[object]] = cast(
    "dict[str, Key[object]]",
    {
        "bootstrap_servers": keys.BOOTSTRAP_SERVERS,
        "client_id": keys.CLIENT_ID,
        "request_timeout": keys.REQUEST_TIMEOUT_MS,
        "api_timeout": keys.API_TIMEOUT_MS,
        "metadata_max_age": keys.METADATA_MAX_AGE_MS,
        "retry_backoff": keys.RETRY_BACKOFF_MS,
        "retry_backoff_max": keys.RETRY_BACKOFF_MAX_MS,
        "receive_buffer_bytes": keys.RECEIVE_BUFFER_BYTES,
    },
)

# Argument, dotted name, and what has to come first.
_LATER: Sequence[tuple[str, str, str]] = (
    ("transactional_id", "transactional.id", "transactions"),
    ("transaction_timeout", "transaction.timeout.ms", "transactions"),
    ("isolation", "isolation.level", "transactions"),
    ("group_id", "group.id", "consumer groups"),
    ("group_instance_id", "group.instance.id", "consumer groups"),
    ("auto_commit", "enable.auto.commit", "consumer groups"),
    ("assignor", "partition.assignment.strategy", "consumer groups"),
    ("max_poll_interval", "max.poll.interval.ms", "consumer groups"),
    ("session_timeout", "session.timeout.ms", "consumer groups"),
    ("dlq_topic", "", "dead letter topics"),
    ("tls", "security.protocol", "TLS"),
    ("auth", "sasl.mechanism", "authentication"),
    ("interceptors", "interceptor.classes", "a later release"),
    ("metrics", "metric.reporters", "a later release"),
    ("send_buffer_bytes", "send.buffer.bytes", "a way to set it through gRPC"),
)
# The same for all names that begin so, and for single ones that have no argument.
_LATER_DOTTED: Mapping[str, str] = {
    "ssl.": "TLS",
    "sasl.": "authentication",
    "group.": "consumer groups",
    "heartbeat.interval.ms": "consumer groups",
    "auto.commit.interval.ms": "consumer groups",
    "transaction.": "transactions",
    "metrics.": "a later release",
    "enable.metrics.push": "a later release",
}
# Kafka's names of what is no key here: an argument takes a callable too.
_ARGUMENT_ALONE: Mapping[str, str] = {
    "key.serializer": "key_serializer",
    "value.serializer": "value_serializer",
    "key.deserializer": "key_deserializer",
    "value.deserializer": "value_deserializer",
    "partitioner.class": "partitioner",
}
# What needs nothing that is missing, by argument or dotted name; for the others, to be without.
_AS_IT_IS: Mapping[str, Sequence[object]] = {
    "isolation": (None, "read_uncommitted"),
    "isolation.level": (None, "read_uncommitted"),
    "security.protocol": (None, "PLAINTEXT"),
}
_UNWANTED: Sequence[object] = (None, False, (), [], "", "false")


class CommonArguments(TypedDict, total=False):
    """What every client takes. Durations are "5s", seconds or a timedelta."""

    client_id: str
    request_timeout: Duration
    api_timeout: Duration
    metadata_max_age: Duration
    retry_backoff: Duration
    retry_backoff_max: Duration
    receive_buffer_bytes: int
    config: Mapping[str, object] | None
    tls: None
    auth: None
    interceptors: Sequence[NoReturn]
    metrics: None


class Options:
    """The values of keys; what was not given has its default."""

    def __init__(self, given: Mapping[Key[object], object]) -> None:
        self._given = given

    def __getitem__(self, key: Key[T]) -> T:
        # A value is what its own key's parse returned, or is its default.
        return cast("T", self._given.get(cast("Key[object]", key), key.default))

    def is_given(self, key: Key[T]) -> bool:
        return cast("Key[object]", key) in self._given


def read_options(
    client: str,
    table: Mapping[str, Key[object]],
    arguments: Mapping[str, object],
    config: Mapping[str, object] | None = None,
) -> Options:
    """The options of a client from what its user wrote. None as an argument means not given."""
    arguments = without_later(client, arguments)
    config = without_later(client, config or {})
    given: dict[Key[object], object] = {}
    for name, raw in arguments.items():
        if name not in table:
            raise _unknown(client, name, table)
        if raw is not None:
            given[table[name]] = _parse_argument(table[name], name, raw)
    by_name = {key.names[Scope.CLIENT]: key for key in table.values()}
    for name, raw in config.items():
        key = by_name.get(name)
        if key is None:
            raise _unknown(client, name, by_name)
        if key in given:
            raise ConfigError(f"{name} is also given as an argument", hint="keep one of the two")
        given[key] = key.parse(raw, name=name, source="config")
    return Options(given)


def without_later(client: str, given: Mapping[str, object]) -> dict[str, object]:
    """What is planned is refused by name; saying that one does not want it is allowed."""
    kept: dict[str, object] = {}
    for name, value in given.items():
        feature = _later_feature(name)
        if feature is None:
            kept[name] = value
        elif value not in _AS_IT_IS.get(name, _UNWANTED):
            shown = f"{name} = {shorten(value)}" if name in _AS_IT_IS else name
            raise NotYetSupported(
                f"{shown} of a {client} needs {feature}", hint="leave it out for now"
            )
    return kept


def _later_feature(name: str) -> str | None:
    """What a name waits for, if it is one of those that come later."""
    for argument, dotted, feature in _LATER:
        if name and name in (argument, dotted):
            return feature
    begins = (feature for start, feature in _LATER_DOTTED.items() if name.startswith(start))
    return next(begins, None)


def _parse_argument(key: Key[object], name: str, raw: object) -> object:
    value_type: object = key.value_type
    if isinstance(value_type, DurationMs):
        raw = to_ms(cast("Duration", raw), name)
    if isinstance(raw, bool):
        raw = "true" if raw else "false"
    return key.parse(raw, name=name, source="argument")


def _unknown(client: str, name: str, known: Mapping[str, object]) -> ConfigError:
    if name in _ARGUMENT_ALONE:
        return ConfigError(
            f"{name} is no key of a {client}", hint=f"give the argument {_ARGUMENT_ALONE[name]}"
        )
    every = [*known, *(later for each in _LATER for later in each[:2])]
    close = difflib.get_close_matches(name[:200].lower(), every, n=1)
    return ConfigError(
        f"{shorten(name)} is no option of a {client}",
        hint=f"did you mean {close[0]}?" if close else "remove it: none has a name like that",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """What every client needs of its options."""

    bootstrap: tuple[str, ...]
    client_id: str
    request_timeout_ms: int
    api_timeout_ms: int
    metadata_max_age_ms: int
    backoff: Backoff
    receive_buffer_bytes: int


def common_options(bootstrap: str | Sequence[str], options: Options, kind: str) -> CommonOptions:
    raw = bootstrap if isinstance(bootstrap, str) else list(bootstrap)
    addresses = keys.BOOTSTRAP_SERVERS.parse(raw, name="bootstrap_servers", source="argument")
    if options.is_given(keys.BOOTSTRAP_SERVERS):
        if addresses != keys.BOOTSTRAP_SERVERS.default:
            raise ConfigError(
                "bootstrap.servers is also given as an argument", hint="keep one of the two"
            )
        addresses = options[keys.BOOTSTRAP_SERVERS]
    if not addresses:
        raise ConfigError("bootstrap_servers is empty", hint="name at least one broker, host:port")
    return CommonOptions(
        bootstrap=addresses,
        client_id=options[keys.CLIENT_ID] or f"kraftlog-{kind}",
        request_timeout_ms=options[keys.REQUEST_TIMEOUT_MS],
        api_timeout_ms=options[keys.API_TIMEOUT_MS],
        metadata_max_age_ms=options[keys.METADATA_MAX_AGE_MS],
        backoff=Backoff(options[keys.RETRY_BACKOFF_MS], options[keys.RETRY_BACKOFF_MAX_MS]),
        receive_buffer_bytes=options[keys.RECEIVE_BUFFER_BYTES],
    )
