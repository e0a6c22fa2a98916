"""The options of a consumer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from kraftlog import client_keys as keys
from kraftlog.client_config import (
    COMMON,
    CommonArguments,
    CommonOptions,
    common_options,
    read_options,
)
from kraftlog.config_key import Key, shorten
from kraftlog.durations import Duration
from kraftlog.errors import ConfigError
from kraftlog.fetch_session import FetchLimits
from kraftlog.offsets import Offset

_TABLE: dict[str, Key[object]] = COMMON | cast(
    "dict[str, Key[object]]",
    {
        "client_rack": keys.CLIENT_RACK,
        "fetch_min_bytes": keys.FETCH_MIN_BYTES,
        "fetch_max_wait": keys.FETCH_MAX_WAIT_MS,
        "fetch_max_bytes": keys.FETCH_MAX_BYTES,
        "max_partition_fetch_bytes": keys.MAX_PARTITION_FETCH_BYTES,
        "max_poll_records": keys.MAX_POLL_RECORDS,
        "offset_reset": keys.AUTO_OFFSET_RESET,
        "check_crcs": keys.CHECK_CRCS,
    },
)

_RESETS = {"earliest": Offset.START, "latest": Offset.END, "error": None}


class ConsumerArguments(CommonArguments, total=False):
    """What a consumer takes beside its topics and deserializers."""

    client_rack: str
    fetch_min_bytes: int
    fetch_max_wait: Duration
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    max_poll_records: int
    offset_reset: Literal["earliest", "latest", "error"] | Duration
    check_crcs: bool
    isolation: Literal["read_uncommitted"]
    group_id: None
    group_instance_id: None
    auto_commit: Literal[False] | None
    dlq_topic: None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    common: CommonOptions
    limits: FetchLimits
    max_poll_records: int
    reset: Offset | None
    """Where to begin without an offset; None: that is an error."""
    check_crcs: bool


def consumer_options(
    bootstrap_servers: str | Sequence[str], arguments: Mapping[str, object]
) -> ConsumerOptions:
    """ConfigError names what does not fit, and why."""
    plain = dict(arguments)
    config = cast("Mapping[str, object] | None", plain.pop("config", None))
    reset = _reset_duration(plain)
    options = read_options("consumer", _TABLE, plain, config)
    return ConsumerOptions(
        common=common_options(bootstrap_servers, options, "consumer"),
        limits=FetchLimits(
            options[keys.FETCH_MAX_WAIT_MS],
            options[keys.FETCH_MIN_BYTES],
            options[keys.FETCH_MAX_BYTES],
            options[keys.MAX_PARTITION_FETCH_BYTES],
            options[keys.CLIENT_RACK] or "",
        ),
        max_poll_records=options[keys.MAX_POLL_RECORDS],
        reset=_RESETS[options[keys.AUTO_OFFSET_RESET]] if reset is None else reset,
        check_crcs=options[keys.CHECK_CRCS],
    )


def _reset_duration(arguments: dict[str, object]) -> Offset | None:
    """offset_reset="1h" begins with what is not older than that."""
    raw = arguments.get("offset_reset")
    if raw is None or raw in _RESETS:
        return None
    try:
        reset = Offset.ago(cast("Duration", raw))
    except ConfigError:
        raise ConfigError(
            f"offset_reset = {shorten(raw)} must be earliest, latest, error or a duration",
            hint="leave it out for latest",
        ) from None
    del arguments["offset_reset"]
    return reset
