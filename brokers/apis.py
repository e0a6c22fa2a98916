"""The requests that a broker understands."""

from kraftlog.apis import API_KEYS, API_VERSIONS, NO_API_KEY, Api, ApiTable

_NAMES = (
    API_VERSIONS,
    "metadata",
    "produce",
    "fetch",
    "list_offsets",
    "epoch_ends",
    "init_producer_id",
    "delete_records",
    "ends",
    "estimate_bytes",
    "describe_replicas",
)

FETCH_RANGE = Api("fetch_range")

APIS = ApiTable(
    "a kraftlog broker",
    (*(Api(name, API_KEYS.get(name, NO_API_KEY)) for name in _NAMES), FETCH_RANGE),
)

UNKNOWN = Api("unknown")
"""Stands in the statistics for a request that only a newer broker knows."""
