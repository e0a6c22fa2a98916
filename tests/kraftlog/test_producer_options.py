import pytest

from kraftlog.errors import ConfigError
from kraftlog.producer_options import ProducerOptions, producer_options
from kraftlog.types import Compression


def options(**arguments: object) -> ProducerOptions:
    return producer_options("b:1", arguments)


# R33
def test_all_of_them() -> None:
    made = options(
        acks=1,
        linger="20ms",
        batch_bytes=1000,
        buffer_bytes=5000,
        compression="zstd",
        delivery_timeout="3s",
        max_block=0,
        max_in_flight=7,
        max_request_bytes=2000,
        retries=3,
        request_timeout="1s",
        client_id="me",
        receive_buffer_bytes=65536,
    )
    assert (made.acks, made.idempotent, made.linger_ms) == (1, False, 20)
    assert (made.batch_bytes, made.buffer_bytes, made.max_request_bytes) == (1000, 5000, 2000)
    assert made.compression is Compression.ZSTD
    assert (made.delivery_timeout_ms, made.max_block_ms, made.retries) == (3000, 0, 3)
    assert (made.max_in_flight, made.common.request_timeout_ms) == (7, 1000)
    assert (made.common.client_id, made.common.receive_buffer_bytes) == ("me", 65536)


def test_defaults_are_safe() -> None:
    made = options()
    assert (made.acks, made.idempotent, made.max_in_flight) == (-1, True, 5)
    assert made.accumulator.linger == 0.005
    assert made.accumulator.idempotent


def test_a_batch_is_never_larger_than_a_request() -> None:
    assert options(batch_bytes=1 << 20, max_request_bytes=1000).batch_bytes == 1000


def test_idempotence_goes_with_acks() -> None:
    assert not options(acks=0).idempotent
    assert not options(enable_idempotence=False).idempotent
    assert options(config={"enable.idempotence": "true"}).idempotent
    with pytest.raises(ConfigError, match="needs acks=all"):
        options(acks=1, enable_idempotence=True)


def test_what_does_not_go_together() -> None:
    with pytest.raises(ConfigError, match="max_in_flight = 6 with idempotence"):
        options(max_in_flight=6)
    with pytest.raises(ConfigError, match="linger"):
        options(linger="3s", delivery_timeout="2s")


@pytest.mark.parametrize(
    "wrong", [{"acks": 2}, {"compression": "rar"}, {"linger": "soon"}, {"batch_bytes": 0}]
)
def test_what_does_not_fit(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        options(**wrong)
