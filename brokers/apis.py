"""The requests that a broker understands, with Kafka's number where Kafka has one."""

from kraftlog.apis import API_VERSIONS, Api, ApiTable

FETCH_RANGE = Api("fetch_range")

APIS = ApiTable(
    "a kraftlog broker",
    (
        Api(API_VERSIONS, 18),
        Api("metadata", 3),
        Api("produce", 0),
        Api("fetch", 1),
        Api("list_offsets", 2),
        Api("epoch_ends", 23),
        Api("init_producer_id", 22),
        Api("delete_records", 21),
        Api("ends"),
        Api("estimate_bytes"),
        Api("describe_replicas"),
        FETCH_RANGE,
    ),
)

UNKNOWN = Api("unknown")
"""Stands in the statistics for a request that only a newer broker knows."""
