"""Everything that answers a broker's requests, as the service sees it."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from brokers.auto_topics import TopicCreator
from brokers.cluster import PartitionId
from brokers.exchange import Cancellable
from brokers.metadata_answers import Controllers, MetadataAnswers
from brokers.producer_ids import ProducerIds
from brokers.requests import (
    DeleteAnswer,
    DeleteRequest,
    DigestOf,
    EndsAnswer,
    EndsRequest,
    EpochAnswer,
    EpochQuery,
    FetchReply,
    FetchRequest,
    OffsetAnswer,
    OffsetQuery,
    ProduceReply,
    ProduceRequest,
    RangeAnswer,
    RangePiece,
    RangeQuery,
    RangeRequest,
    ReplicaInfo,
)
from brokers.wire import Directory
from metadata_log.image import Image


class DataPlane(Protocol):
    """What `brokers.replica_manager` answers."""

    def produce(
        self, request: ProduceRequest, on_done: Callable[[ProduceReply], None]
    ) -> Cancellable | None: ...

    def fetch(
        self, request: FetchRequest, on_done: Callable[[FetchReply], None]
    ) -> Cancellable | None: ...

    def fetch_range(self, request: RangeRequest) -> AsyncIterator[RangePiece]: ...

    def list_offsets(self, queries: Sequence[OffsetQuery]) -> Sequence[OffsetAnswer]: ...

    def epoch_ends(self, queries: Sequence[EpochQuery]) -> Sequence[EpochAnswer]: ...

    def ends(
        self, request: EndsRequest, on_done: Callable[[Sequence[EndsAnswer]], None]
    ) -> Cancellable | None: ...

    def delete_records(
        self, request: DeleteRequest, on_done: Callable[[Sequence[DeleteAnswer]], None]
    ) -> Cancellable | None: ...

    def estimate_bytes(self, queries: Sequence[RangeQuery]) -> Sequence[RangeAnswer]: ...

    async def describe_replicas(
        self, partitions: Sequence[PartitionId] | None = None, *, digest: DigestOf = False
    ) -> Sequence[ReplicaInfo]: ...


class ClusterState(Protocol):
    """The metadata that this broker has applied."""

    @property
    def image(self) -> Image: ...

    @property
    def directory(self) -> Directory: ...

    def controllers(self) -> Controllers: ...


class Backend(Protocol):
    """Everything that answers requests, once there is something to answer with."""

    @property
    def data(self) -> DataPlane: ...
    @property
    def cluster(self) -> ClusterState: ...
    @property
    def answers(self) -> MetadataAnswers: ...
    @property
    def producer_ids(self) -> ProducerIds: ...
    @property
    def topics(self) -> TopicCreator | None:
        """None: topics are not created by themselves."""
        ...
