"""The options of source and sink: those of Spark's Kafka connector, with and without `kafka.`.

Spark hands them over in lower case. A name that nobody reads is an error with the name that was
perhaps meant; what stands for a feature that is not there yet is refused by name.
"""

import difflib
import logging
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

from kraftlog.client_config import without_later
from kraftlog.client_keys import CLIENT_KEYS, REQUEST_BYTES_MAX
from kraftlog.config_key import Scope, shorten
from kraftlog.consumer_options import ConsumerOptions, consumer_options
from kraftlog.durations import to_ms
from kraftlog.errors import ConfigError, NotYetSupported
from kraftlog.producer_options import ProducerOptions, producer_options
from spark_connector.offsets import (
    Partitions,
    Places,
    parse_assignment,
    parse_places,
    parse_timestamp,
    parse_timestamps,
)

logger = logging.getLogger(__name__)

PREFIX = "kafka."
BOOTSTRAP = "bootstrap.servers"

_SOURCE = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "groupIdPrefix",
    "group.id",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_SINK = ("topic", "includeHeaders", "delivery")
_OWN = {"source": _SOURCE, "sink": _SINK}
_OTHER = {"source": "sink", "sink": "source"}
"""Whose options may stand beside one's own: a job often has one set of them for both."""
_SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname", "outputmode"})
"""What Spark itself adds to the options of a stream."""

_ENDING = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")

# What a connector decides itself, and why.
_DECIDED = {
    "auto.offset.reset": "use startingOffsets",
    "key.deserializer": "keys are binary: use functions of DataFrames",
    "value.deserializer": "values are binary: use functions of DataFrames",
    "key.serializer": "keys are string or binary: use functions of DataFrames",
    "value.serializer": "values are string or binary: use functions of DataFrames",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "interceptor.classes": "use functions of DataFrames",
    "partitioner.class": "rows go by their column partition, else by their key",
    "partitioner.ignore.keys": "rows go by their column partition, else by their key",
}

# Of Kafka's clients, and without a part to play here.
_NO_EFFECT = {
    "source": frozenset(
        {
            "allow.auto.create.topics",
            "exclude.internal.topics",
            "heartbeat.interval.ms",
            "max.poll.interval.ms",
            "partition.assignment.strategy",
            "session.timeout.ms",
        }
    ),
    "sink": frozenset(
        {
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.zstd.level",
            "metadata.max.idle.ms",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
        }
    ),
}
_NO_EFFECT_EITHER = frozenset(
    {
        "client.dns.lookup",
        "connections.max.idle.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)
_CAPPED = ("fetch.max.bytes", "max.partition.fetch.bytes")
"""More of them than we can is no harm: Kafka's default is 50 MiB."""

LIMIT_MAX = 2**63 - 1


class Delivery(Enum):
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class NoMatch(Enum):
    """What a starting time means that is later than every record."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Topics:
    """What is read: exactly one of the three."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: Partitions = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a source was told. Picklable: readers carry it to the executors."""

    topics: Topics
    starting: Places
    ending: Places
    no_match: NoMatch
    fail_on_data_loss: bool
    max_offsets: int | None
    min_offsets: int | None
    max_bytes: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    include_headers: bool
    patience_ms: int
    offset_retries: int
    offset_retry_ms: int
    client: ConsumerOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Picklable, as SourceOptions."""

    topic: str | None
    include_headers: bool
    bootstrap: str
    config: tuple[tuple[str, object], ...]
    """The producer's, checked."""
    client: ProducerOptions


@dataclass(slots=True)
class Given:
    """Options by the names of a table, and what is left for the client."""

    who: str
    own: dict[str, str]
    client: dict[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        value = self.own.get(name.lower())
        return None if value is None else value.strip()

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise refused(name, text, "true or false")
        return text.lower() == "true"

    def number(self, name: str, *, least: int = 1) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= LIMIT_MAX:
            raise refused(name, text, f"a whole number from {least}")
        return int(text)

    def duration_ms(self, name: str, default: int) -> int:
        """Spark's form ("15m", "30 s", "1 min") or ours; a number alone is milliseconds."""
        text = self.text(name)
        if text is None:
            return default
        if text.isascii() and text.isdigit():
            return int(text)
        try:
            return to_ms(text.replace(" ", "").replace("min", "m"), name)
        except ConfigError as error:
            raise refused(name, text, "a duration like 15m or 30s") from error

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        text = self.text(name)
        if text is None:
            return default
        known = list(choices)
        if text.lower() not in known:
            raise refused(name, text, " or ".join(known))
        return text.lower()


def refused(name: str, value: object, must: str) -> ConfigError:
    return ConfigError(f"option {name} = {shorten(value)} must be {must}")


# -- names


def read_given(who: str, raw: Mapping[str, str]) -> Given:
    """Sort what was given, by its name with or without the prefix."""
    known = {name.lower(): name for name in _OWN[who]}
    others = {name.lower(): name for name in _OWN[_OTHER[who]]}
    given = Given(who, {})
    seen: dict[str, str] = {}
    for key, value in raw.items():
        name = key.lower().removeprefix(PREFIX)
        if name in _SPARKS_OWN:
            continue
        if seen.setdefault(name, value) != value:
            raise ConfigError(
                f"option {known.get(name, name)} is given twice, as {shorten(seen[name])} and"
                f" {shorten(value)}",
                hint=f"keep it with or without {PREFIX}, not both",
            )
        if name in known:
            given.own[name] = value
        elif name in others:
            _warn(f"option {others[name]} is one of a {_OTHER[who]}: a {who} leaves it out")
        elif name in _NO_EFFECT[who] | _NO_EFFECT_EITHER:
            _warn(f"option {PREFIX}{name} has no effect on a {who} of kraftlog")
        else:
            given.client[name] = _capped(name, value)
    _check_client(given, known.values())
    return given


def _capped(name: str, value: str) -> str:
    text = value.strip()
    if name not in _CAPPED or not text.isascii() or not text.isdigit():
        return value
    if int(text) <= REQUEST_BYTES_MAX:
        return value
    _warn(f"option {PREFIX}{name} = {shorten(text)} is taken for {REQUEST_BYTES_MAX}, the most")
    return str(REQUEST_BYTES_MAX)


@cache
def _warn(what: str) -> None:
    """Once: Spark reads the options many times."""
    logger.warning("%s", what)


def _check_client(given: Given, own: Iterable[str]) -> None:
    for name, instead in _DECIDED.items():
        if name in given.client:
            raise ConfigError(f"option {PREFIX}{name} is not for a {given.who}", hint=instead)
    if str(given.client.get("security.protocol", "")).upper() == "PLAINTEXT":
        del given.client["security.protocol"]
    for name in given.client.keys() - without_later(given.who, given.client).keys():
        del given.client[name]
    names = {key.names[Scope.CLIENT] for key in CLIENT_KEYS}
    every = {name.lower(): name for name in own} | {name: PREFIX + name for name in names}
    for name in given.client:
        if name not in names:
            close = difflib.get_close_matches(name[:200], every, n=1)
            hint = f"did you mean {every[close[0]]}?" if close else "remove it"
            raise ConfigError(f"{shorten(name)} is no option of a {given.who}", hint=hint)


def _bootstrap(given: Given) -> str:
    servers = given.client.pop(BOOTSTRAP, None)
    if not servers:
        raise ConfigError(
            f"option {PREFIX}{BOOTSTRAP} is missing",
            hint="name at least one broker, host:port, that the executors can reach too",
        )
    return str(servers)


# -- the source


def source_options(raw: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    given = read_given("source", raw)
    topics = _topics(given)
    _check_mode(given, streaming=streaming)
    no_match = given.choice(
        "startingOffsetsByTimestampStrategy", [each.value for each in NoMatch], "error"
    )
    default_delay_ms = 15 * 60_000
    return SourceOptions(
        topics=topics,
        starting=_starting(given, streaming=streaming),
        ending=_ending(given),
        no_match=NoMatch(no_match),
        fail_on_data_loss=given.flag("failOnDataLoss", default=True),
        max_offsets=given.number("maxOffsetsPerTrigger"),
        min_offsets=given.number("minOffsetsPerTrigger"),
        max_bytes=given.number("maxBytesPerTrigger"),
        max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", default_delay_ms),
        min_partitions=given.number("minPartitions"),
        max_records_per_partition=given.number("maxRecordsPerPartition"),
        include_headers=given.flag("includeHeaders", default=False),
        patience_ms=given.number("kafkaConsumer.pollTimeoutMs") or 120_000,
        offset_retries=_or(given.number("fetchOffset.numRetries", least=0), 3),
        offset_retry_ms=_or(given.number("fetchOffset.retryIntervalMs", least=0), 10),
        client=_consumer(given),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _consumer(given: Given) -> ConsumerOptions:
    prefix = given.text("groupIdPrefix") or "spark-kraftlog-source"
    # There are no groups yet; as with Kafka's source the name is for the brokers' logs only.
    name = given.text("group.id") or f"{prefix}-{uuid.uuid4()}"
    config = {"client.id": name, **given.client}
    servers = config.pop(BOOTSTRAP, None) or _bootstrap(given)
    return consumer_options(str(servers), {"config": config})


def _topics(given: Given) -> Topics:
    ways = ("subscribe", "subscribePattern", "assign")
    used = [way for way in ways if given.text(way) is not None]
    if len(used) != 1:
        what = "none is" if not used else f"{' and '.join(used)} are"
        raise ConfigError(f"one of {', '.join(ways)} must be given, and {what}")
    way, text = used[0], given.text(used[0]) or ""
    if way == "assign":
        return Topics(assigned=parse_assignment(text))
    if not text:
        raise refused(way, text, "the name of a topic, or more, with commas between")
    if way == "subscribePattern":
        return Topics(pattern=text)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise refused(way, text, "the name of a topic, or more, with commas between")
    return Topics(names=names)


def _check_mode(given: Given, *, streaming: bool) -> None:
    if streaming:
        for name in _ENDING:
            if given.text(name) is not None:
                raise ConfigError(f"option {name} is for batch reads", hint="a stream has no end")
    least, most = given.number("minOffsetsPerTrigger"), given.number("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"option minOffsetsPerTrigger = {least} is above maxOffsetsPerTrigger = {most}"
        )


def _starting(given: Given, *, streaming: bool) -> Places:
    default = "latest" if streaming else "earliest"
    places = _places(given, "starting", default)
    if not streaming and places.has_latest:
        raise ConfigError(
            "startingOffsets is latest, and a batch read would be empty",
            hint="use earliest, or offsets for each partition",
        )
    return places


def _ending(given: Given) -> Places:
    places = _places(given, "ending", "latest")
    if places.has_earliest:
        raise ConfigError(
            "endingOffsets is earliest, and a batch read would be empty",
            hint="use latest, or offsets for each partition",
        )
    return places


def _places(given: Given, which: str, default: str) -> Places:
    """A time for all comes before times of partitions, and these before offsets."""
    time = given.text(f"{which}Timestamp")
    if time is not None:
        return parse_timestamp(f"{which}Timestamp", time)
    times = given.text(f"{which}OffsetsByTimestamp")
    if times is not None:
        return parse_timestamps(f"{which}OffsetsByTimestamp", times)
    return parse_places(f"{which}Offsets", given.text(f"{which}Offsets") or default)


# -- the sink


def sink_options(raw: Mapping[str, str]) -> SinkOptions:
    given = read_given("sink", raw)
    delivery = given.choice("delivery", [each.value for each in Delivery], "at_least_once")
    if Delivery(delivery) is Delivery.EXACTLY_ONCE:
        raise NotYetSupported(
            "delivery = exactly_once of a sink needs transactions",
            hint="use at_least_once, and make the reader drop repeats",
        )
    config = {"batch.size": SINK_BATCH_BYTES, **given.client}
    servers = config.pop(BOOTSTRAP, None) or _bootstrap(given)
    client = producer_options(str(servers), {"config": config})
    if client.acks == 0:
        raise ConfigError(
            "kafka.acks = 0 of a sink", hint="use 1 or all: nobody would notice what is lost"
        )
    topic = given.text("topic")
    if topic == "":
        raise refused("topic", topic, "the name of a topic")
    return SinkOptions(
        topic=topic,
        include_headers=given.flag("includeHeaders", default=True),
        bootstrap=str(servers),
        config=tuple(sorted(config.items())),
        client=client,
    )


SINK_BATCH_BYTES = 512 << 10
"""Larger than a producer's default: rows come by the ten thousand."""


def includes_headers(raw: Mapping[str, str]) -> bool:
    return read_given("source", raw).flag("includeHeaders", default=False)
