from datetime import timedelta

import pytest

from kraftlog import client_keys as keys
from kraftlog.client_config import COMMON, Options, common_options, read_options
from kraftlog.errors import ConfigError, NotYetSupported
from kraftlog.retry import Backoff


def read(config: dict[str, object] | None = None, **arguments: object) -> Options:
    return read_options("producer", COMMON, arguments, config)


def test_arguments_and_dotted_names_mean_the_same() -> None:
    by_argument = read(request_timeout="2s", client_id="me")
    by_name = read({"request.timeout.ms": 2_000, "client.id": "me"})
    assert by_argument[keys.REQUEST_TIMEOUT_MS] == by_name[keys.REQUEST_TIMEOUT_MS] == 2_000
    assert by_argument[keys.CLIENT_ID] == by_name[keys.CLIENT_ID] == "me"
    assert by_argument.is_given(keys.CLIENT_ID)
    assert by_argument[keys.API_TIMEOUT_MS] == keys.API_TIMEOUT_MS.default
    assert not by_argument.is_given(keys.API_TIMEOUT_MS)


@pytest.mark.parametrize("two_seconds", ["2s", "2000ms", 2, 2.0, timedelta(seconds=2)])
def test_durations_as_arguments(two_seconds: object) -> None:
    assert read(request_timeout=two_seconds)[keys.REQUEST_TIMEOUT_MS] == 2_000


def test_a_number_under_a_dotted_name_is_milliseconds() -> None:
    assert read({"request.timeout.ms": "2"})[keys.REQUEST_TIMEOUT_MS] == 2
    assert read({"request.timeout.ms": "2s"})[keys.REQUEST_TIMEOUT_MS] == 2_000


def test_none_is_not_given() -> None:
    assert not read(client_id=None).is_given(keys.CLIENT_ID)


def test_both_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"request\.timeout\.ms is also given as an argument"):
        read({"request.timeout.ms": 1}, request_timeout=1)


@pytest.mark.parametrize(
    ("name", "meant"), [("request_timout", "request_timeout"), ("clientid", "client_id")]
)
def test_a_misspelt_argument_gets_a_guess(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean {meant}"):
        read_options("producer", COMMON, {name: 1})


def test_a_misspelt_dotted_name_gets_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"did you mean request\.timeout\.ms"):
        read({"request.timeout": 1})
    with pytest.raises(ConfigError, match="none has a name like that"):
        read({"x": 1})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("transactional_id", "tx"),
        ("group_id", "g"),
        ("auto_commit", True),
        ("tls", object()),
        ("auth", object()),
        ("isolation", "read_committed"),
        ("dlq_topic", "dead"),
        ("send_buffer_bytes", 1000),
    ],
)
def test_what_comes_later_is_refused_by_name(argument: str, value: object) -> None:
    with pytest.raises(NotYetSupported, match=argument):
        read_options("producer", COMMON, {argument: value})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("transactional_id", None),
        ("tls", None),
        ("auth", None),
        ("interceptors", ()),
        ("interceptors", []),
        ("metrics", None),
        ("group_id", None),
        ("auto_commit", False),
        ("isolation", "read_uncommitted"),
        ("isolation", None),
    ],
)
def test_to_be_without_it_is_no_option_at_all(argument: str, value: object) -> None:
    assert not read_options("producer", COMMON, {argument: value}).is_given(keys.CLIENT_ID)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transactional.id", None),
        ("enable.auto.commit", "false"),
        ("enable.auto.commit", False),
        ("isolation.level", "read_uncommitted"),
        ("security.protocol", "PLAINTEXT"),
        ("group.id", ""),
    ],
)
def test_under_its_dotted_name_neither(name: str, value: object) -> None:
    assert read({name: value, "client.id": "me"})[keys.CLIENT_ID] == "me"


@pytest.mark.parametrize(
    "name", ["transactional.id", "group.id", "enable.auto.commit", "security.protocol"]
)
def test_under_its_dotted_name_too(name: str) -> None:
    with pytest.raises(NotYetSupported, match=name):
        read({name: "true"})
    with pytest.raises(NotYetSupported, match=r"isolation\.level"):
        read({"isolation.level": "read_committed"})


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("heartbeat.interval.ms", "consumer groups"),
        ("session.timeout.ms", "consumer groups"),
        ("auto.commit.interval.ms", "consumer groups"),
        ("group.protocol", "consumer groups"),
        ("group.remote.assignor", "consumer groups"),
        ("transaction.two.phase.commit.enable", "transactions"),
        ("ssl.truststore.location", "TLS"),
        ("ssl.endpoint.identification.algorithm", "TLS"),
        ("sasl.jaas.config", "authentication"),
        ("sasl.login.callback.handler.class", "authentication"),
        ("metrics.num.samples", "a later release"),
        ("enable.metrics.push", "a later release"),
    ],
)
def test_so_are_all_names_of_what_comes_later(name: str, feature: str) -> None:
    with pytest.raises(NotYetSupported, match=f"{name} of a producer needs {feature}"):
        read({name: "1"})
    assert not read({name: None}).is_given(keys.CLIENT_ID)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("key.serializer", "key_serializer"),
        ("value.deserializer", "value_deserializer"),
        ("partitioner.class", "partitioner"),
    ],
)
def test_what_is_an_argument_alone_is_said_to_be_one(name: str, argument: str) -> None:
    with pytest.raises(ConfigError, match=f"give the argument {argument}"):
        read({name: "x"})


def test_the_address_of_one_broker_is_enough() -> None:
    options = common_options("b1:9000", read(), "producer")
    assert options.bootstrap == ("b1:9000",)
    assert options.client_id == "kraftlog-producer"
    assert options.backoff == Backoff(50, 1_000)
    assert common_options(["a:1", "b:2"], read(), "x").bootstrap == ("a:1", "b:2")
    assert common_options("a:1, b:2", read(), "x").bootstrap == ("a:1", "b:2")


def test_the_address_under_its_dotted_name() -> None:
    options = read({"bootstrap.servers": "b1:9000"})
    assert common_options("localhost:19101", options, "x").bootstrap == ("b1:9000",)
    with pytest.raises(ConfigError, match="also given as an argument"):
        common_options("b2:9000", options, "x")


@pytest.mark.parametrize("bootstrap", ["", [], "nowhere", "a:1,a:1", "a:99999"])
def test_addresses_are_checked(bootstrap: str | list[str]) -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers"):
        common_options(bootstrap, read(), "producer")
