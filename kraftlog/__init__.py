"""Public client and shared vocabulary of kraftlog.

    from kraftlog import Admin, Consumer, Producer, TopicPartition, Offset
    from kraftlog.aio import AsyncAdmin, AsyncConsumer, AsyncProducer

Names are loaded when they are used: `import kraftlog` alone costs next to nothing.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kraftlog.admin import Admin
    from kraftlog.admin_types import ConfigResource, NewTopic
    from kraftlog.cluster_events import ClusterEvent
    from kraftlog.cluster_health import GREEN, RED, YELLOW, ClusterHealth
    from kraftlog.consumer import Consumer
    from kraftlog.delivery import DeliveryFuture, FlushResult
    from kraftlog.errors import KraftError
    from kraftlog.offsets import Offset, OffsetRange
    from kraftlog.producer import Producer
    from kraftlog.records import ConsumerRecord, PartitionInfo, Record, RecordMetadata
    from kraftlog.types import TopicPartition, Uuid

# Else gRPC writes a line to standard error for every connection that ends. It looks when it is
# imported, and only then.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

__all__ = [
    "GREEN",
    "RED",
    "YELLOW",
    "Admin",
    "ClusterEvent",
    "ClusterHealth",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "DeliveryFuture",
    "FlushResult",
    "KraftError",
    "NewTopic",
    "Offset",
    "OffsetRange",
    "PartitionInfo",
    "Producer",
    "Record",
    "RecordMetadata",
    "TopicPartition",
    "Uuid",
]

_HOMES = {
    "GREEN": "cluster_health",
    "RED": "cluster_health",
    "YELLOW": "cluster_health",
    "Admin": "admin",
    "ClusterEvent": "cluster_events",
    "ClusterHealth": "cluster_health",
    "ConfigResource": "admin_types",
    "Consumer": "consumer",
    "ConsumerRecord": "records",
    "DeliveryFuture": "delivery",
    "FlushResult": "delivery",
    "KraftError": "errors",
    "NewTopic": "admin_types",
    "Offset": "offsets",
    "OffsetRange": "offsets",
    "PartitionInfo": "records",
    "Producer": "producer",
    "Record": "records",
    "RecordMetadata": "records",
    "TopicPartition": "types",
    "Uuid": "types",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kraftlog' has no attribute {name!r}")
    value: object = getattr(import_module(f"kraftlog.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
