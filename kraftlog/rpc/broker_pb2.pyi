from kraftlog.rpc import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BrokerRequests(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[BrokerRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[BrokerRequest, _Mapping]]] = ...) -> None: ...

class BrokerReplies(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[BrokerReply]
    def __init__(self, replies: _Optional[_Iterable[_Union[BrokerReply, _Mapping]]] = ...) -> None: ...

class BrokerRequest(_message.Message):
    __slots__ = ("header", "cluster_id", "api_versions", "metadata", "produce", "fetch", "list_offsets", "epoch_ends", "init_producer_id", "delete_records", "ends", "estimate_bytes", "describe_replicas")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    API_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    PRODUCE_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    LIST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_ENDS_FIELD_NUMBER: _ClassVar[int]
    INIT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    DELETE_RECORDS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.RequestHeader
    cluster_id: bytes
    api_versions: _common_pb2.ApiVersionsRequest
    metadata: MetadataRequest
    produce: ProduceRequest
    fetch: FetchDataRequest
    list_offsets: ListOffsetsRequest
    epoch_ends: EpochEndsRequest
    init_producer_id: InitProducerIdRequest
    delete_records: DeleteRecordsRequest
    ends: EndsRequest
    estimate_bytes: EstimateBytesRequest
    describe_replicas: DescribeReplicasRequest
    def __init__(self, header: _Optional[_Union[_common_pb2.RequestHeader, _Mapping]] = ..., cluster_id: _Optional[bytes] = ..., api_versions: _Optional[_Union[_common_pb2.ApiVersionsRequest, _Mapping]] = ..., metadata: _Optional[_Union[MetadataRequest, _Mapping]] = ..., produce: _Optional[_Union[ProduceRequest, _Mapping]] = ..., fetch: _Optional[_Union[FetchDataRequest, _Mapping]] = ..., list_offsets: _Optional[_Union[ListOffsetsRequest, _Mapping]] = ..., epoch_ends: _Optional[_Union[EpochEndsRequest, _Mapping]] = ..., init_producer_id: _Optional[_Union[InitProducerIdRequest, _Mapping]] = ..., delete_records: _Optional[_Union[DeleteRecordsRequest, _Mapping]] = ..., ends: _Optional[_Union[EndsRequest, _Mapping]] = ..., estimate_bytes: _Optional[_Union[EstimateBytesRequest, _Mapping]] = ..., describe_replicas: _Optional[_Union[DescribeReplicasRequest, _Mapping]] = ...) -> None: ...

class BrokerReply(_message.Message):
    __slots__ = ("correlation_id", "error", "throttle_ms", "api_versions", "metadata", "produce", "fetch", "list_offsets", "epoch_ends", "init_producer_id", "delete_records", "ends", "estimate_bytes", "describe_replicas")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_MS_FIELD_NUMBER: _ClassVar[int]
    API_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    PRODUCE_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    LIST_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_ENDS_FIELD_NUMBER: _ClassVar[int]
    INIT_PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    DELETE_RECORDS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    error: _common_pb2.Error
    throttle_ms: int
    api_versions: _common_pb2.ApiVersionsReply
    metadata: MetadataReply
    produce: ProduceReply
    fetch: FetchDataReply
    list_offsets: ListOffsetsReply
    epoch_ends: EpochEndsReply
    init_producer_id: InitProducerIdReply
    delete_records: DeleteRecordsReply
    ends: EndsReply
    estimate_bytes: EstimateBytesReply
    describe_replicas: DescribeReplicasReply
    def __init__(self, correlation_id: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., throttle_ms: _Optional[int] = ..., api_versions: _Optional[_Union[_common_pb2.ApiVersionsReply, _Mapping]] = ..., metadata: _Optional[_Union[MetadataReply, _Mapping]] = ..., produce: _Optional[_Union[ProduceReply, _Mapping]] = ..., fetch: _Optional[_Union[FetchDataReply, _Mapping]] = ..., list_offsets: _Optional[_Union[ListOffsetsReply, _Mapping]] = ..., epoch_ends: _Optional[_Union[EpochEndsReply, _Mapping]] = ..., init_producer_id: _Optional[_Union[InitProducerIdReply, _Mapping]] = ..., delete_records: _Optional[_Union[DeleteRecordsReply, _Mapping]] = ..., ends: _Optional[_Union[EndsReply, _Mapping]] = ..., estimate_bytes: _Optional[_Union[EstimateBytesReply, _Mapping]] = ..., describe_replicas: _Optional[_Union[DescribeReplicasReply, _Mapping]] = ...) -> None: ...

class MetadataRequest(_message.Message):
    __slots__ = ("topics", "all_topics", "allow_auto_create")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    ALL_TOPICS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_AUTO_CREATE_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicName]
    all_topics: bool
    allow_auto_create: bool
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicName, _Mapping]]] = ..., all_topics: bool = ..., allow_auto_create: bool = ...) -> None: ...

class TopicName(_message.Message):
    __slots__ = ("topic_id", "name")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ...) -> None: ...

class MetadataReply(_message.Message):
    __slots__ = ("cluster_id", "offset", "brokers", "controllers", "controller_id", "controller_epoch", "topics")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    offset: int
    brokers: _containers.RepeatedCompositeFieldContainer[BrokerNode]
    controllers: _containers.RepeatedCompositeFieldContainer[_common_pb2.NodeEndpoint]
    controller_id: int
    controller_epoch: int
    topics: _containers.RepeatedCompositeFieldContainer[TopicMetadata]
    def __init__(self, cluster_id: _Optional[bytes] = ..., offset: _Optional[int] = ..., brokers: _Optional[_Iterable[_Union[BrokerNode, _Mapping]]] = ..., controllers: _Optional[_Iterable[_Union[_common_pb2.NodeEndpoint, _Mapping]]] = ..., controller_id: _Optional[int] = ..., controller_epoch: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[TopicMetadata, _Mapping]]] = ...) -> None: ...

class BrokerNode(_message.Message):
    __slots__ = ("node_id", "endpoint", "rack")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    endpoint: _common_pb2.Endpoint
    rack: str
    def __init__(self, node_id: _Optional[int] = ..., endpoint: _Optional[_Union[_common_pb2.Endpoint, _Mapping]] = ..., rack: _Optional[str] = ...) -> None: ...

class TopicMetadata(_message.Message):
    __slots__ = ("name", "topic_id", "error", "partitions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    topic_id: bytes
    error: _common_pb2.Error
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionMetadata]
    def __init__(self, name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[PartitionMetadata, _Mapping]]] = ...) -> None: ...

class PartitionMetadata(_message.Message):
    __slots__ = ("partition", "leader_id", "leader_epoch", "replicas", "isr", "elr")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    ELR_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader_id: int
    leader_epoch: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    elr: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., elr: _Optional[_Iterable[int]] = ...) -> None: ...

class ProduceRequest(_message.Message):
    __slots__ = ("acks", "timeout_ms", "topics")
    ACKS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    acks: int
    timeout_ms: int
    topics: _containers.RepeatedCompositeFieldContainer[ProduceTopic]
    def __init__(self, acks: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[ProduceTopic, _Mapping]]] = ...) -> None: ...

class ProduceTopic(_message.Message):
    __slots__ = ("topic_id", "name", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[ProducePartition]
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[ProducePartition, _Mapping]]] = ...) -> None: ...

class ProducePartition(_message.Message):
    __slots__ = ("partition", "records")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    records: bytes
    def __init__(self, partition: _Optional[int] = ..., records: _Optional[bytes] = ...) -> None: ...

class ProduceReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[ProduceTopicReply]
    def __init__(self, topics: _Optional[_Iterable[_Union[ProduceTopicReply, _Mapping]]] = ...) -> None: ...

class ProduceTopicReply(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[ProducePartitionReply]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[ProducePartitionReply, _Mapping]]] = ...) -> None: ...

class ProducePartitionReply(_message.Message):
    __slots__ = ("partition", "error", "base_offset", "append_time", "log_start_offset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error: _common_pb2.Error
    base_offset: int
    append_time: int
    log_start_offset: int
    def __init__(self, partition: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., base_offset: _Optional[int] = ..., append_time: _Optional[int] = ..., log_start_offset: _Optional[int] = ...) -> None: ...

class InitProducerIdRequest(_message.Message):
    __slots__ = ("transactional_id",)
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    def __init__(self, transactional_id: _Optional[str] = ...) -> None: ...

class InitProducerIdReply(_message.Message):
    __slots__ = ("producer_id", "producer_epoch")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    producer_id: int
    producer_epoch: int
    def __init__(self, producer_id: _Optional[int] = ..., producer_epoch: _Optional[int] = ...) -> None: ...

class FetchDataRequest(_message.Message):
    __slots__ = ("replica", "max_wait_ms", "min_bytes", "max_bytes", "session_id", "session_epoch", "topics", "forgotten", "rack", "wake")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    WAKE_FIELD_NUMBER: _ClassVar[int]
    replica: ReplicaFetcher
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    session_epoch: int
    topics: _containers.RepeatedCompositeFieldContainer[FetchTopic]
    forgotten: _containers.RepeatedCompositeFieldContainer[FetchTopic]
    rack: str
    wake: bool
    def __init__(self, replica: _Optional[_Union[ReplicaFetcher, _Mapping]] = ..., max_wait_ms: _Optional[int] = ..., min_bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ..., session_id: _Optional[int] = ..., session_epoch: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[FetchTopic, _Mapping]]] = ..., forgotten: _Optional[_Iterable[_Union[FetchTopic, _Mapping]]] = ..., rack: _Optional[str] = ..., wake: bool = ...) -> None: ...

class ReplicaFetcher(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class FetchTopic(_message.Message):
    __slots__ = ("topic_id", "name", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[FetchPartition]
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[FetchPartition, _Mapping]]] = ...) -> None: ...

class FetchPartition(_message.Message):
    __slots__ = ("partition", "leader_epoch", "offset", "last_fetched_epoch", "log_start_offset", "max_bytes", "high_watermark")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCHED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int
    high_watermark: int
    def __init__(self, partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., offset: _Optional[int] = ..., last_fetched_epoch: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., high_watermark: _Optional[int] = ...) -> None: ...

class FetchDataReply(_message.Message):
    __slots__ = ("session_id", "topics")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    session_id: int
    topics: _containers.RepeatedCompositeFieldContainer[FetchTopicReply]
    def __init__(self, session_id: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[FetchTopicReply, _Mapping]]] = ...) -> None: ...

class FetchTopicReply(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[FetchPartitionReply]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[FetchPartitionReply, _Mapping]]] = ...) -> None: ...

class FetchPartitionReply(_message.Message):
    __slots__ = ("partition", "error", "high_watermark", "log_start_offset", "diverging", "preferred_replica", "records", "end_offset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DIVERGING_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_REPLICA_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error: _common_pb2.Error
    high_watermark: int
    log_start_offset: int
    diverging: EpochEnd
    preferred_replica: int
    records: bytes
    end_offset: int
    def __init__(self, partition: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., diverging: _Optional[_Union[EpochEnd, _Mapping]] = ..., preferred_replica: _Optional[int] = ..., records: _Optional[bytes] = ..., end_offset: _Optional[int] = ...) -> None: ...

class EpochEnd(_message.Message):
    __slots__ = ("epoch", "end_offset")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    end_offset: int
    def __init__(self, epoch: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class FetchRangeRequest(_message.Message):
    __slots__ = ("header", "topic_id", "name", "partition", "leader_epoch", "from_offset", "to_offset", "message_bytes")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TO_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.RequestHeader
    topic_id: bytes
    name: str
    partition: int
    leader_epoch: int
    from_offset: int
    to_offset: int
    message_bytes: int
    def __init__(self, header: _Optional[_Union[_common_pb2.RequestHeader, _Mapping]] = ..., topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., from_offset: _Optional[int] = ..., to_offset: _Optional[int] = ..., message_bytes: _Optional[int] = ...) -> None: ...

class FetchRangeReply(_message.Message):
    __slots__ = ("error", "high_watermark", "records", "next_offset")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.Error
    high_watermark: int
    records: bytes
    next_offset: int
    def __init__(self, error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., high_watermark: _Optional[int] = ..., records: _Optional[bytes] = ..., next_offset: _Optional[int] = ...) -> None: ...

class ListOffsetsRequest(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[ListOffsetsTopic]
    def __init__(self, topics: _Optional[_Iterable[_Union[ListOffsetsTopic, _Mapping]]] = ...) -> None: ...

class ListOffsetsTopic(_message.Message):
    __slots__ = ("topic_id", "name", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[ListOffsetsPartition]
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[ListOffsetsPartition, _Mapping]]] = ...) -> None: ...

class ListOffsetsPartition(_message.Message):
    __slots__ = ("partition", "leader_epoch", "timestamp")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader_epoch: int
    timestamp: int
    def __init__(self, partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., timestamp: _Optional[int] = ...) -> None: ...

class ListOffsetsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[ListOffsetsTopicReply]
    def __init__(self, topics: _Optional[_Iterable[_Union[ListOffsetsTopicReply, _Mapping]]] = ...) -> None: ...

class ListOffsetsTopicReply(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[ListOffsetsPartitionReply]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[ListOffsetsPartitionReply, _Mapping]]] = ...) -> None: ...

class ListOffsetsPartitionReply(_message.Message):
    __slots__ = ("partition", "error", "offset", "timestamp", "leader_epoch")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error: _common_pb2.Error
    offset: int
    timestamp: int
    leader_epoch: int
    def __init__(self, partition: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., offset: _Optional[int] = ..., timestamp: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class EpochEndsRequest(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[EpochEndsTopic]
    def __init__(self, topics: _Optional[_Iterable[_Union[EpochEndsTopic, _Mapping]]] = ...) -> None: ...

class EpochEndsTopic(_message.Message):
    __slots__ = ("topic_id", "name", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[EpochEndsPartition]
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[EpochEndsPartition, _Mapping]]] = ...) -> None: ...

class EpochEndsPartition(_message.Message):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    partition: int
    current_leader_epoch: int
    leader_epoch: int
    def __init__(self, partition: _Optional[int] = ..., current_leader_epoch: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class EpochEndsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[EpochEndsTopicReply]
    def __init__(self, topics: _Optional[_Iterable[_Union[EpochEndsTopicReply, _Mapping]]] = ...) -> None: ...

class EpochEndsTopicReply(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[EpochEndsPartitionReply]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[EpochEndsPartitionReply, _Mapping]]] = ...) -> None: ...

class EpochEndsPartitionReply(_message.Message):
    __slots__ = ("partition", "error", "end")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error: _common_pb2.Error
    end: EpochEnd
    def __init__(self, partition: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., end: _Optional[_Union[EpochEnd, _Mapping]] = ...) -> None: ...

class DeleteRecordsRequest(_message.Message):
    __slots__ = ("timeout_ms", "topics")
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    topics: _containers.RepeatedCompositeFieldContainer[DeleteRecordsTopic]
    def __init__(self, timeout_ms: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[DeleteRecordsTopic, _Mapping]]] = ...) -> None: ...

class DeleteRecordsTopic(_message.Message):
    __slots__ = ("topic_id", "name", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[DeleteRecordsPartition]
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[DeleteRecordsPartition, _Mapping]]] = ...) -> None: ...

class DeleteRecordsPartition(_message.Message):
    __slots__ = ("partition", "offset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    partition: int
    offset: int
    def __init__(self, partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class DeleteRecordsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[DeleteRecordsTopicReply]
    def __init__(self, topics: _Optional[_Iterable[_Union[DeleteRecordsTopicReply, _Mapping]]] = ...) -> None: ...

class DeleteRecordsTopicReply(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[DeleteRecordsPartitionReply]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[DeleteRecordsPartitionReply, _Mapping]]] = ...) -> None: ...

class DeleteRecordsPartitionReply(_message.Message):
    __slots__ = ("partition", "error", "log_start_offset")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error: _common_pb2.Error
    log_start_offset: int
    def __init__(self, partition: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., log_start_offset: _Optional[int] = ...) -> None: ...

class EndsRequest(_message.Message):
    __slots__ = ("topics", "max_wait_ms")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[EndsTopic]
    max_wait_ms: int
    def __init__(self, topics: _Optional[_Iterable[_Union[EndsTopic, _Mapping]]] = ..., max_wait_ms: _Optional[int] = ...) -> None: ...

class EndsTopic(_message.Message):
    __slots__ = ("topic_id", "name", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    partitions: _containers.RepeatedCompositeFieldContainer[EndsPartition]
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[EndsPartition, _Mapping]]] = ...) -> None: ...

class EndsPartition(_message.Message):
    __slots__ = ("partition", "known_end")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    KNOWN_END_FIELD_NUMBER: _ClassVar[int]
    partition: int
    known_end: int
    def __init__(self, partition: _Optional[int] = ..., known_end: _Optional[int] = ...) -> None: ...

class EndsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[EndsTopicReply]
    def __init__(self, topics: _Optional[_Iterable[_Union[EndsTopicReply, _Mapping]]] = ...) -> None: ...

class EndsTopicReply(_message.Message):
    __slots__ = ("topic_id", "partitions")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[EndsPartitionReply]
    def __init__(self, topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[EndsPartitionReply, _Mapping]]] = ...) -> None: ...

class EndsPartitionReply(_message.Message):
    __slots__ = ("partition", "error", "log_start_offset", "high_watermark", "leader_epoch")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    partition: int
    error: _common_pb2.Error
    log_start_offset: int
    high_watermark: int
    leader_epoch: int
    def __init__(self, partition: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., log_start_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class EstimateBytesRequest(_message.Message):
    __slots__ = ("ranges",)
    RANGES_FIELD_NUMBER: _ClassVar[int]
    ranges: _containers.RepeatedCompositeFieldContainer[OffsetRange]
    def __init__(self, ranges: _Optional[_Iterable[_Union[OffsetRange, _Mapping]]] = ...) -> None: ...

class OffsetRange(_message.Message):
    __slots__ = ("topic_id", "name", "partition", "from_offset", "to_offset")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TO_OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    partition: int
    from_offset: int
    to_offset: int
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ..., partition: _Optional[int] = ..., from_offset: _Optional[int] = ..., to_offset: _Optional[int] = ...) -> None: ...

class EstimateBytesReply(_message.Message):
    __slots__ = ("ranges",)
    RANGES_FIELD_NUMBER: _ClassVar[int]
    ranges: _containers.RepeatedCompositeFieldContainer[EstimateResult]
    def __init__(self, ranges: _Optional[_Iterable[_Union[EstimateResult, _Mapping]]] = ...) -> None: ...

class EstimateResult(_message.Message):
    __slots__ = ("error", "bytes")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    error: _common_pb2.Error
    bytes: int
    def __init__(self, error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., bytes: _Optional[int] = ...) -> None: ...

class DescribeReplicasRequest(_message.Message):
    __slots__ = ("topics", "digest", "digest_of")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    DIGEST_OF_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicName]
    digest: bool
    digest_of: _containers.RepeatedCompositeFieldContainer[OffsetRange]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicName, _Mapping]]] = ..., digest: bool = ..., digest_of: _Optional[_Iterable[_Union[OffsetRange, _Mapping]]] = ...) -> None: ...

class DescribeReplicasReply(_message.Message):
    __slots__ = ("replicas",)
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaDescription]
    def __init__(self, replicas: _Optional[_Iterable[_Union[ReplicaDescription, _Mapping]]] = ...) -> None: ...

class ReplicaDescription(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "log_dir", "size_bytes", "log_start_offset", "high_watermark", "end_offset", "leader_epoch", "is_leader", "digest")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LOG_DIR_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    IS_LEADER_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: bytes
    partition: int
    log_dir: str
    size_bytes: int
    log_start_offset: int
    high_watermark: int
    end_offset: int
    leader_epoch: int
    is_leader: bool
    digest: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., log_dir: _Optional[str] = ..., size_bytes: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., end_offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., is_leader: bool = ..., digest: _Optional[int] = ...) -> None: ...
