import pytest

from kraftlog import client_keys as keys
from kraftlog.client_keys import CLIENT_KEYS
from kraftlog.config_key import Key, Scope
from kraftlog.config_keys import ALL_KEYS
from kraftlog.errors import ConfigError

# Kafka's defaults, written down once more; what differs says why where it is declared.
KAFKA: dict[str, str] = {
    "client.id": "none",
    "client.rack": "none",
    "request.timeout.ms": "30000",
    "default.api.timeout.ms": "60000",
    "metadata.max.age.ms": "300000",
    "retry.backoff.max.ms": "1000",
    "acks": "all",
    "linger.ms": "5",
    "max.block.ms": "60000",
    "delivery.timeout.ms": "120000",
    "compression.type": "none",
    "max.in.flight.requests.per.connection": "5",
    "max.request.size": "1048576",
    "retries": "2147483647",
    "fetch.min.bytes": "1",
    "fetch.max.wait.ms": "500",
    "max.partition.fetch.bytes": "1048576",
    "max.poll.records": "500",
    "auto.offset.reset": "latest",
    "check.crcs": "true",
}
OURS: dict[str, str] = {
    "bootstrap.servers": "localhost:19101",
    "retry.backoff.ms": "50",
    "receive.buffer.bytes": "-1",
    "enable.idempotence": "auto",
    "batch.size": "262144",
    "buffer.memory": "67108864",
    "fetch.max.bytes": "1048576",
}


def test_names_and_defaults() -> None:
    assert {key.name: key.default_text for key in CLIENT_KEYS} == KAFKA | OURS


@pytest.mark.parametrize("key", CLIENT_KEYS, ids=lambda key: key.name)
def test_each_declaration_is_whole(key: Key[object]) -> None:
    assert set(key.names) == {Scope.CLIENT}
    assert key.doc.endswith(".")
    assert key.parse(key.default_text) == key.default
    key.check(key.default, name="x")


def test_they_are_known_to_everybody() -> None:
    assert set(CLIENT_KEYS) <= set(ALL_KEYS)


@pytest.mark.parametrize(("raw", "acks"), [("all", -1), (-1, -1), (0, 0), ("1", 1), (1, 1)])
def test_acks(raw: object, acks: int) -> None:
    assert keys.ACKS.parse(raw) == acks


@pytest.mark.parametrize("raw", [2, "ALL", True, None, "", -2])
def test_other_acks(raw: object) -> None:
    with pytest.raises(ConfigError, match="0, 1 or all"):
        keys.ACKS.parse(raw)
