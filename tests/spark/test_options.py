import pickle

import pytest

from kraftlog.client_keys import REQUEST_BYTES_MAX
from kraftlog.errors import ConfigError, KraftError, NotYetSupported
from kraftlog.offsets import Offset
from spark_connector.options import (
    NoMatch,
    SinkOptions,
    SourceOptions,
    _warn,
    includes_headers,
    sink_options,
    source_options,
)

SERVERS = {"kafka.bootstrap.servers": "b1:1"}


def source(**options: str) -> SourceOptions:
    return read(options, streaming=False)


def read(options: dict[str, str], *, streaming: bool) -> SourceOptions:
    given = {name.lower(): value for name, value in ({"subscribe": "t"} | options).items()}
    return source_options(SERVERS | given, streaming=streaming)


def sink(**options: str) -> SinkOptions:
    return sink_options(SERVERS | {name.lower(): value for name, value in options.items()})


def test_the_defaults_are_kafkas() -> None:
    plain, stream = source(), read({}, streaming=True)
    assert plain.topics.names == ("t",)
    assert plain.starting.everywhere == Offset.START
    assert stream.starting.everywhere == Offset.END
    assert plain.ending.everywhere == Offset.END
    assert plain.fail_on_data_loss
    assert not plain.include_headers
    assert plain.no_match is NoMatch.ERROR
    assert (plain.max_offsets, plain.min_offsets, plain.max_bytes) == (None, None, None)
    assert (plain.min_partitions, plain.max_records_per_partition) == (None, None)
    assert plain.max_trigger_delay_ms == 15 * 60_000
    assert (plain.patience_ms, plain.offset_retries, plain.offset_retry_ms) == (120_000, 3, 10)
    assert plain.client.common.bootstrap == ("b1:1",)
    assert plain.client.common.client_id.startswith("spark-kraftlog-source-")


def test_every_option() -> None:
    options = dict(
        startingOffsets="earliest",
        failOnDataLoss="false",
        maxOffsetsPerTrigger="100",
        minOffsetsPerTrigger="10",
        maxBytesPerTrigger="1000",
        maxTriggerDelay="1 min",
        minPartitions="4",
        maxRecordsPerPartition="50",
        includeHeaders="TRUE",
        groupIdPrefix="mine",
        startingOffsetsByTimestampStrategy="latest",
        **{
            "kafkaConsumer.pollTimeoutMs": "5000",
            "fetchOffset.numRetries": "0",
            "fetchOffset.retryIntervalMs": "7",
            "kafka.request.timeout.ms": "900",
        },
    )
    given = read(options, streaming=True)
    assert given.starting.everywhere == Offset.START
    assert not given.fail_on_data_loss
    assert (given.max_offsets, given.min_offsets, given.max_bytes) == (100, 10, 1000)
    assert (given.min_partitions, given.max_records_per_partition) == (4, 50)
    assert given.max_trigger_delay_ms == 60_000
    assert (given.patience_ms, given.offset_retries, given.offset_retry_ms) == (5000, 0, 7)
    assert given.include_headers
    assert given.no_match is NoMatch.LATEST
    assert given.client.common.client_id.startswith("mine-")
    assert given.client.common.request_timeout_ms == 900
    assert pickle.loads(pickle.dumps(given)) == given  # noqa: S301  our own


def test_names_with_and_without_the_prefix() -> None:
    plain = source_options({"bootstrap.servers": "b1:1", "subscribe": "t"}, streaming=False)
    assert plain.client.common.bootstrap == ("b1:1",)
    prefixed = source_options(SERVERS | {"kafka.subscribe": "t, u"}, streaming=False)
    assert prefixed.topics.names == ("t", "u")
    with pytest.raises(ConfigError, match="given twice"):
        source_options(SERVERS | {"bootstrap.servers": "b2:1"}, streaming=False)
    assert source(**{"kafka.group.id": "g"}).client.common.client_id == "g"


def test_a_time_comes_before_times_and_these_before_offsets() -> None:
    times = '{"t": {"0": 5}}'
    one = source(startingTimestamp="7", startingOffsetsByTimestamp=times, startingOffsets="1")
    assert one.starting.everywhere == Offset.at_time(7)
    each = source(startingOffsetsByTimestamp=times, startingOffsets="1")
    assert list((each.starting.each or {}).values()) == [Offset.at_time(5)]
    assert source(endingTimestamp="9").ending.everywhere == Offset.at_time(9)


def test_what_is_read() -> None:
    assert source(subscribe=" a , b,a").topics.names == ("a", "b")
    pattern = source_options(SERVERS | {"subscribepattern": "a.*"}, streaming=False)
    assert pattern.topics.pattern == "a.*"
    assigned = source_options(SERVERS | {"assign": '{"a":[1]}'}, streaming=False)
    assert [str(place) for place in assigned.topics.assigned] == ["a-1"]
    assert includes_headers(SERVERS | {"includeheaders": "true"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subcribe": "u"}, "did you mean subscribe"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"kafka.bootstrap.server": "x:1"}, "did you mean kafka.bootstrap.servers"),
        ({"kafka.fetch.max.byte": "1"}, "did you mean kafka.fetch.max.bytes"),
        ({"zzzz": "1"}, "'zzzz' is no option of a source .remove it"),
        ({"assign": '{"t":[0]}'}, "subscribe and assign are"),
        ({"subscribe": " , "}, "subscribe = ',' must be"),
        ({"startingOffsets": "latest"}, "startingOffsets is latest"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets is latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets is earliest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "endingOffsets is earliest"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss = 'maybe' must be true or false"),
        ({"minPartitions": "0"}, "minPartitions = '0' must be a whole number from 1"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay = 'soon' must be a duration"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger = 9 is above",
        ),
        ({"startingOffsetsByTimestampStrategy": "x"}, "must be error or latest"),
        ({"kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
        ({"kafka.key.deserializer": "x"}, "use functions of DataFrames"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint"),
        ({"kafka.security.protocol": "SASL_SSL"}, "needs TLS"),
        ({"kafka.isolation.level": "read_committed"}, "needs transactions"),
        ({"kafka.request.timeout.ms": "soon"}, "request.timeout.ms = 'soon'"),
    ],
)
def test_what_a_source_refuses(options: dict[str, str], said: str) -> None:
    with pytest.raises(KraftError, match=said):
        source(**options)


def test_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"option kafka.bootstrap.servers is missing"):
        source_options({"subscribe": "t"}, streaming=False)
    with pytest.raises(ConfigError, match=r"one of subscribe, subscribePattern, assign .* none is"):
        source_options(SERVERS, streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is for batch reads"):
        read({name: "latest"}, streaming=True)


def test_no_security_is_what_there_is() -> None:
    assert source(**{"kafka.security.protocol": "plaintext"}).topics.names == ("t",)


SOURCE_ALONE = [
    "allow.auto.create.topics",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "session.timeout.ms",
]
SINK_ALONE = ["compression.zstd.level", "metadata.max.idle.ms"]
BOTH = [
    "client.dns.lookup",
    "connections.max.idle.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "send.buffer.bytes",
]


@pytest.mark.parametrize("name", [*SOURCE_ALONE, *SINK_ALONE, *BOTH])
def test_what_kafkas_clients_take_and_ours_have_no_use_for(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    _warn.cache_clear()
    given = {f"kafka.{name}": "600"}
    read = [make for make, names in ((source, SOURCE_ALONE), (sink, SINK_ALONE)) if name in names]
    for make in read or (source, sink):
        make(**given)
        make(**given)
        said = [record.message for record in caplog.records]
        assert len(said) == 1, "once"
        assert f"kafka.{name} has no effect on a {make.__name__}" in said[0]
        caplog.clear()


def test_fetches_that_are_too_large_are_cut() -> None:
    given = {"kafka.fetch.max.bytes": "52428800", "kafka.max.partition.fetch.bytes": "1000"}
    limits = source(**given).client.limits
    assert limits.max_bytes == REQUEST_BYTES_MAX
    assert limits.partition_max_bytes == 1000
    with pytest.raises(ConfigError, match=r"fetch.max.bytes"):
        source(**{"kafka.fetch.max.bytes": "many"})


def test_options_of_the_other_side_may_stand_beside_ones_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _warn.cache_clear()
    sink(topic="t", startingOffsets="earliest", failOnDataLoss="false")
    source(topic="t")
    assert [record.message for record in caplog.records] == [
        "option startingOffsets is one of a source: a sink leaves it out",
        "option failOnDataLoss is one of a source: a sink leaves it out",
        "option topic is one of a sink: a source leaves it out",
    ]


def test_a_sink() -> None:
    plain = sink(topic="t")
    assert plain.topic == "t"
    assert plain.client.idempotent
    assert pickle.loads(pickle.dumps(plain)) == plain  # noqa: S301  our own
    hash(plain)
    tuned = sink(**{"kafka.compression.type": "zstd", "kafka.batch.size": "1000"})
    assert tuned.topic is None
    assert tuned.client.batch_bytes == 1000


def test_what_a_sink_refuses() -> None:
    with pytest.raises(NotYetSupported, match="exactly_once of a sink needs transactions"):
        sink(delivery="exactly_once")
    with pytest.raises(ConfigError, match="must be at_least_once or exactly_once"):
        sink(delivery="twice")
    with pytest.raises(ConfigError, match="did you mean topic"):
        sink(topics="t")
    with pytest.raises(ConfigError, match=r"kafka.acks = 0"):
        sink(**{"kafka.acks": "0"})
    with pytest.raises(ConfigError, match=r"value.serializer"):
        sink(**{"kafka.value.serializer": "x"})
    with pytest.raises(ConfigError, match=r"partitioner.class .*column partition"):
        sink(**{"kafka.partitioner.class": "RoundRobinPartitioner"})
    with pytest.raises(ConfigError, match="option topic = '' must be the name of a topic"):
        sink(topic=" ")
