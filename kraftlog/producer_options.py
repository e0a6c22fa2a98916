"""The options of a producer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from kraftlog import client_keys as keys
from kraftlog.accumulator import AccumulatorSettings
from kraftlog.client_config import (
    COMMON,
    CommonArguments,
    CommonOptions,
    Options,
    common_options,
    read_options,
)
from kraftlog.config_key import Key
from kraftlog.durations import Duration
from kraftlog.errors import ConfigError
from kraftlog.send_window import REMEMBERED_BATCHES
from kraftlog.types import Compression

_TABLE: dict[str, Key[object]] = COMMON | cast(
    "dict[str, Key[object]]",
    {
        "acks": keys.ACKS,
        "enable_idempotence": keys.ENABLE_IDEMPOTENCE,
        "linger": keys.LINGER_MS,
        "batch_bytes": keys.BATCH_SIZE,
        "buffer_bytes": keys.BUFFER_MEMORY,
        "compression": keys.COMPRESSION_TYPE,
        "delivery_timeout": keys.DELIVERY_TIMEOUT_MS,
        "max_block": keys.MAX_BLOCK_MS,
        "max_in_flight": keys.MAX_IN_FLIGHT,
        "max_request_bytes": keys.MAX_REQUEST_SIZE,
        "retries": keys.RETRIES,
    },
)


class ProducerArguments(CommonArguments, total=False):
    """What a producer takes beside its serializers and its partitioner."""

    acks: Literal["all", 0, 1]
    enable_idempotence: bool
    linger: Duration
    batch_bytes: int
    buffer_bytes: int
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    delivery_timeout: Duration
    max_block: Duration
    max_in_flight: int
    max_request_bytes: int
    retries: int
    transactional_id: None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    common: CommonOptions
    acks: int
    idempotent: bool
    linger_ms: int
    batch_bytes: int
    buffer_bytes: int
    compression: Compression
    delivery_timeout_ms: int
    max_block_ms: int
    max_in_flight: int
    max_request_bytes: int
    retries: int

    @property
    def accumulator(self) -> AccumulatorSettings:
        return AccumulatorSettings(
            batch_bytes=self.batch_bytes,
            buffer_bytes=self.buffer_bytes,
            record_bytes_max=self.max_request_bytes,
            linger=self.linger_ms / 1000,
            max_in_flight=self.max_in_flight,
            idempotent=self.idempotent,
        )


def producer_options(
    bootstrap_servers: str | Sequence[str], arguments: Mapping[str, object]
) -> ProducerOptions:
    """ConfigError names what does not fit, and why."""
    plain = dict(arguments)
    config = cast("Mapping[str, object] | None", plain.pop("config", None))
    options = read_options("producer", _TABLE, plain, config)
    made = ProducerOptions(
        common=common_options(bootstrap_servers, options, "producer"),
        acks=options[keys.ACKS],
        idempotent=_is_idempotent(options),
        linger_ms=options[keys.LINGER_MS],
        batch_bytes=min(options[keys.BATCH_SIZE], options[keys.MAX_REQUEST_SIZE]),
        buffer_bytes=options[keys.BUFFER_MEMORY],
        compression=options[keys.COMPRESSION_TYPE],
        delivery_timeout_ms=options[keys.DELIVERY_TIMEOUT_MS],
        max_block_ms=options[keys.MAX_BLOCK_MS],
        max_in_flight=options[keys.MAX_IN_FLIGHT],
        max_request_bytes=options[keys.MAX_REQUEST_SIZE],
        retries=options[keys.RETRIES],
    )
    _check(made)
    return made


def _is_idempotent(options: Options) -> bool:
    wanted = options[keys.ENABLE_IDEMPOTENCE]
    is_all = options[keys.ACKS] == keys.ACKS.default
    if wanted and not is_all:
        raise ConfigError(
            "enable_idempotence needs acks=all",
            hint="leave one of the two out: a record on one broker alone can be lost and repeated",
        )
    return is_all if wanted is None else wanted


def _check(options: ProducerOptions) -> None:
    if options.idempotent and options.max_in_flight > REMEMBERED_BATCHES:
        raise ConfigError(
            f"max_in_flight = {options.max_in_flight} with idempotence",
            hint=f"use at most {REMEMBERED_BATCHES}: a broker finds no older repeats",
        )
    if options.linger_ms >= options.delivery_timeout_ms:
        raise ConfigError(
            f"linger is {options.linger_ms} ms, delivery_timeout {options.delivery_timeout_ms} ms",
            hint="a record must have time left when its batch is sent",
        )
