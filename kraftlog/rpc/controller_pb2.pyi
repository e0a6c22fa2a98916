from kraftlog.rpc import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResourceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESOURCE_TYPE_UNSPECIFIED: _ClassVar[ResourceType]
    RESOURCE_TYPE_TOPIC: _ClassVar[ResourceType]
    RESOURCE_TYPE_BROKER: _ClassVar[ResourceType]

class ConfigOperation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_OPERATION_SET: _ClassVar[ConfigOperation]
    CONFIG_OPERATION_DELETE: _ClassVar[ConfigOperation]
    CONFIG_OPERATION_APPEND: _ClassVar[ConfigOperation]
    CONFIG_OPERATION_SUBTRACT: _ClassVar[ConfigOperation]

class ElectionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ELECTION_TYPE_PREFERRED: _ClassVar[ElectionType]
    ELECTION_TYPE_UNCLEAN: _ClassVar[ElectionType]
RESOURCE_TYPE_UNSPECIFIED: ResourceType
RESOURCE_TYPE_TOPIC: ResourceType
RESOURCE_TYPE_BROKER: ResourceType
CONFIG_OPERATION_SET: ConfigOperation
CONFIG_OPERATION_DELETE: ConfigOperation
CONFIG_OPERATION_APPEND: ConfigOperation
CONFIG_OPERATION_SUBTRACT: ConfigOperation
ELECTION_TYPE_PREFERRED: ElectionType
ELECTION_TYPE_UNCLEAN: ElectionType

class ControllerRequests(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[ControllerRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[ControllerRequest, _Mapping]]] = ...) -> None: ...

class ControllerReplies(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[ControllerReply]
    def __init__(self, replies: _Optional[_Iterable[_Union[ControllerReply, _Mapping]]] = ...) -> None: ...

class ControllerRequest(_message.Message):
    __slots__ = ("header", "cluster_id", "timeout_ms", "request_id", "api_versions", "register_broker", "heartbeat", "alter_partitions", "allocate_producer_ids", "unregister_broker", "fence_broker", "create_topics", "delete_topics", "create_partitions", "alter_configs", "elect_leaders", "reassign", "update_features", "describe_cluster", "describe_topics", "describe_configs", "list_reassignments")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    API_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_PRODUCER_IDS_FIELD_NUMBER: _ClassVar[int]
    UNREGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    FENCE_BROKER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    CREATE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALTER_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    REASSIGN_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CLUSTER_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    LIST_REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.RequestHeader
    cluster_id: bytes
    timeout_ms: int
    request_id: RequestId
    api_versions: _common_pb2.ApiVersionsRequest
    register_broker: RegisterBrokerRequest
    heartbeat: HeartbeatRequest
    alter_partitions: AlterPartitionsRequest
    allocate_producer_ids: AllocateProducerIdsRequest
    unregister_broker: UnregisterBrokerRequest
    fence_broker: FenceBrokerRequest
    create_topics: CreateTopicsRequest
    delete_topics: DeleteTopicsRequest
    create_partitions: CreatePartitionsRequest
    alter_configs: AlterConfigsRequest
    elect_leaders: ElectLeadersRequest
    reassign: ReassignRequest
    update_features: UpdateFeaturesRequest
    describe_cluster: DescribeClusterRequest
    describe_topics: DescribeTopicsRequest
    describe_configs: DescribeConfigsRequest
    list_reassignments: ListReassignmentsRequest
    def __init__(self, header: _Optional[_Union[_common_pb2.RequestHeader, _Mapping]] = ..., cluster_id: _Optional[bytes] = ..., timeout_ms: _Optional[int] = ..., request_id: _Optional[_Union[RequestId, _Mapping]] = ..., api_versions: _Optional[_Union[_common_pb2.ApiVersionsRequest, _Mapping]] = ..., register_broker: _Optional[_Union[RegisterBrokerRequest, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatRequest, _Mapping]] = ..., alter_partitions: _Optional[_Union[AlterPartitionsRequest, _Mapping]] = ..., allocate_producer_ids: _Optional[_Union[AllocateProducerIdsRequest, _Mapping]] = ..., unregister_broker: _Optional[_Union[UnregisterBrokerRequest, _Mapping]] = ..., fence_broker: _Optional[_Union[FenceBrokerRequest, _Mapping]] = ..., create_topics: _Optional[_Union[CreateTopicsRequest, _Mapping]] = ..., delete_topics: _Optional[_Union[DeleteTopicsRequest, _Mapping]] = ..., create_partitions: _Optional[_Union[CreatePartitionsRequest, _Mapping]] = ..., alter_configs: _Optional[_Union[AlterConfigsRequest, _Mapping]] = ..., elect_leaders: _Optional[_Union[ElectLeadersRequest, _Mapping]] = ..., reassign: _Optional[_Union[ReassignRequest, _Mapping]] = ..., update_features: _Optional[_Union[UpdateFeaturesRequest, _Mapping]] = ..., describe_cluster: _Optional[_Union[DescribeClusterRequest, _Mapping]] = ..., describe_topics: _Optional[_Union[DescribeTopicsRequest, _Mapping]] = ..., describe_configs: _Optional[_Union[DescribeConfigsRequest, _Mapping]] = ..., list_reassignments: _Optional[_Union[ListReassignmentsRequest, _Mapping]] = ...) -> None: ...

class ControllerReply(_message.Message):
    __slots__ = ("correlation_id", "error", "offset", "api_versions", "register_broker", "heartbeat", "alter_partitions", "allocate_producer_ids", "unregister_broker", "fence_broker", "create_topics", "delete_topics", "create_partitions", "alter_configs", "elect_leaders", "reassign", "update_features", "describe_cluster", "describe_topics", "describe_configs", "list_reassignments")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    API_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_PRODUCER_IDS_FIELD_NUMBER: _ClassVar[int]
    UNREGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    FENCE_BROKER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    CREATE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ALTER_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    REASSIGN_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CLUSTER_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    LIST_REASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    error: _common_pb2.Error
    offset: int
    api_versions: _common_pb2.ApiVersionsReply
    register_broker: RegisterBrokerReply
    heartbeat: HeartbeatReply
    alter_partitions: AlterPartitionsReply
    allocate_producer_ids: AllocateProducerIdsReply
    unregister_broker: UnregisterBrokerReply
    fence_broker: FenceBrokerReply
    create_topics: CreateTopicsReply
    delete_topics: DeleteTopicsReply
    create_partitions: CreatePartitionsReply
    alter_configs: AlterConfigsReply
    elect_leaders: ElectLeadersReply
    reassign: ReassignReply
    update_features: UpdateFeaturesReply
    describe_cluster: DescribeClusterReply
    describe_topics: DescribeTopicsReply
    describe_configs: DescribeConfigsReply
    list_reassignments: ListReassignmentsReply
    def __init__(self, correlation_id: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., offset: _Optional[int] = ..., api_versions: _Optional[_Union[_common_pb2.ApiVersionsReply, _Mapping]] = ..., register_broker: _Optional[_Union[RegisterBrokerReply, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatReply, _Mapping]] = ..., alter_partitions: _Optional[_Union[AlterPartitionsReply, _Mapping]] = ..., allocate_producer_ids: _Optional[_Union[AllocateProducerIdsReply, _Mapping]] = ..., unregister_broker: _Optional[_Union[UnregisterBrokerReply, _Mapping]] = ..., fence_broker: _Optional[_Union[FenceBrokerReply, _Mapping]] = ..., create_topics: _Optional[_Union[CreateTopicsReply, _Mapping]] = ..., delete_topics: _Optional[_Union[DeleteTopicsReply, _Mapping]] = ..., create_partitions: _Optional[_Union[CreatePartitionsReply, _Mapping]] = ..., alter_configs: _Optional[_Union[AlterConfigsReply, _Mapping]] = ..., elect_leaders: _Optional[_Union[ElectLeadersReply, _Mapping]] = ..., reassign: _Optional[_Union[ReassignReply, _Mapping]] = ..., update_features: _Optional[_Union[UpdateFeaturesReply, _Mapping]] = ..., describe_cluster: _Optional[_Union[DescribeClusterReply, _Mapping]] = ..., describe_topics: _Optional[_Union[DescribeTopicsReply, _Mapping]] = ..., describe_configs: _Optional[_Union[DescribeConfigsReply, _Mapping]] = ..., list_reassignments: _Optional[_Union[ListReassignmentsReply, _Mapping]] = ...) -> None: ...

class RequestId(_message.Message):
    __slots__ = ("client", "sequence")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    client: bytes
    sequence: int
    def __init__(self, client: _Optional[bytes] = ..., sequence: _Optional[int] = ...) -> None: ...

class RegisterBrokerRequest(_message.Message):
    __slots__ = ("broker_id", "incarnation_id", "endpoint", "rack", "log_dir_ids", "previous_broker_epoch", "features")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    LOG_DIR_IDS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    incarnation_id: bytes
    endpoint: _common_pb2.Endpoint
    rack: str
    log_dir_ids: _containers.RepeatedScalarFieldContainer[bytes]
    previous_broker_epoch: int
    features: _containers.RepeatedCompositeFieldContainer[FeatureRange]
    def __init__(self, broker_id: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., endpoint: _Optional[_Union[_common_pb2.Endpoint, _Mapping]] = ..., rack: _Optional[str] = ..., log_dir_ids: _Optional[_Iterable[bytes]] = ..., previous_broker_epoch: _Optional[int] = ..., features: _Optional[_Iterable[_Union[FeatureRange, _Mapping]]] = ...) -> None: ...

class FeatureRange(_message.Message):
    __slots__ = ("name", "min_level", "max_level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIN_LEVEL_FIELD_NUMBER: _ClassVar[int]
    MAX_LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    min_level: int
    max_level: int
    def __init__(self, name: _Optional[str] = ..., min_level: _Optional[int] = ..., max_level: _Optional[int] = ...) -> None: ...

class RegisterBrokerReply(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "applied_offset", "want_fence", "want_shut_down")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    APPLIED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    WANT_FENCE_FIELD_NUMBER: _ClassVar[int]
    WANT_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    applied_offset: int
    want_fence: bool
    want_shut_down: bool
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., applied_offset: _Optional[int] = ..., want_fence: bool = ..., want_shut_down: bool = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ("is_caught_up", "is_fenced", "should_shut_down")
    IS_CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    IS_FENCED_FIELD_NUMBER: _ClassVar[int]
    SHOULD_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(self, is_caught_up: bool = ..., is_fenced: bool = ..., should_shut_down: bool = ...) -> None: ...

class AlterPartitionsRequest(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "changes")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    changes: _containers.RepeatedCompositeFieldContainer[IsrChange]
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[IsrChange, _Mapping]]] = ...) -> None: ...

class IsrMember(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class IsrChange(_message.Message):
    __slots__ = ("topic_id", "partition", "leader_epoch", "partition_epoch", "isr", "recovering")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    RECOVERING_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: _containers.RepeatedCompositeFieldContainer[IsrMember]
    recovering: bool
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[_Union[IsrMember, _Mapping]]] = ..., recovering: bool = ...) -> None: ...

class AlterPartitionsReply(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[IsrResult]
    def __init__(self, results: _Optional[_Iterable[_Union[IsrResult, _Mapping]]] = ...) -> None: ...

class IsrResult(_message.Message):
    __slots__ = ("topic_id", "partition", "error", "leader_id", "leader_epoch", "partition_epoch", "isr", "recovering")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    RECOVERING_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    partition: int
    error: _common_pb2.Error
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    isr: _containers.RepeatedScalarFieldContainer[int]
    recovering: bool
    def __init__(self, topic_id: _Optional[bytes] = ..., partition: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[int]] = ..., recovering: bool = ...) -> None: ...

class AllocateProducerIdsRequest(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class AllocateProducerIdsReply(_message.Message):
    __slots__ = ("first_id", "count")
    FIRST_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    first_id: int
    count: int
    def __init__(self, first_id: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class UnregisterBrokerRequest(_message.Message):
    __slots__ = ("broker_id",)
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    def __init__(self, broker_id: _Optional[int] = ...) -> None: ...

class UnregisterBrokerReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FenceBrokerRequest(_message.Message):
    __slots__ = ("broker_id", "fenced")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    fenced: bool
    def __init__(self, broker_id: _Optional[int] = ..., fenced: bool = ...) -> None: ...

class FenceBrokerReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateTopicsRequest(_message.Message):
    __slots__ = ("topics", "validate_only")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[NewTopic]
    validate_only: bool
    def __init__(self, topics: _Optional[_Iterable[_Union[NewTopic, _Mapping]]] = ..., validate_only: bool = ...) -> None: ...

class NewTopic(_message.Message):
    __slots__ = ("name", "partitions", "replication_factor", "assignments", "configs")
    class ConfigsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: int
    replication_factor: int
    assignments: _containers.RepeatedCompositeFieldContainer[Replicas]
    configs: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[Replicas, _Mapping]]] = ..., configs: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Replicas(_message.Message):
    __slots__ = ("broker_ids",)
    BROKER_IDS_FIELD_NUMBER: _ClassVar[int]
    broker_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, broker_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class NamedResult(_message.Message):
    __slots__ = ("name", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: _common_pb2.Error
    def __init__(self, name: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class CreateTopicsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[NewTopicResult]
    def __init__(self, topics: _Optional[_Iterable[_Union[NewTopicResult, _Mapping]]] = ...) -> None: ...

class NewTopicResult(_message.Message):
    __slots__ = ("name", "error", "topic_id", "partitions", "replication_factor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: _common_pb2.Error
    topic_id: bytes
    partitions: int
    replication_factor: int
    def __init__(self, name: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ...) -> None: ...

class DeleteTopicsRequest(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicRef]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicRef, _Mapping]]] = ...) -> None: ...

class TopicRef(_message.Message):
    __slots__ = ("topic_id", "name")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    name: str
    def __init__(self, topic_id: _Optional[bytes] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteTopicsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[NamedResult]
    def __init__(self, topics: _Optional[_Iterable[_Union[NamedResult, _Mapping]]] = ...) -> None: ...

class CreatePartitionsRequest(_message.Message):
    __slots__ = ("topics", "validate_only")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[NewPartitions]
    validate_only: bool
    def __init__(self, topics: _Optional[_Iterable[_Union[NewPartitions, _Mapping]]] = ..., validate_only: bool = ...) -> None: ...

class NewPartitions(_message.Message):
    __slots__ = ("topic", "count", "assignments")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    count: int
    assignments: _containers.RepeatedCompositeFieldContainer[Replicas]
    def __init__(self, topic: _Optional[str] = ..., count: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[Replicas, _Mapping]]] = ...) -> None: ...

class CreatePartitionsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[NamedResult]
    def __init__(self, topics: _Optional[_Iterable[_Union[NamedResult, _Mapping]]] = ...) -> None: ...

class ConfigResource(_message.Message):
    __slots__ = ("type", "name")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    type: ResourceType
    name: str
    def __init__(self, type: _Optional[_Union[ResourceType, str]] = ..., name: _Optional[str] = ...) -> None: ...

class ConfigChange(_message.Message):
    __slots__ = ("name", "operation", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    operation: ConfigOperation
    value: str
    def __init__(self, name: _Optional[str] = ..., operation: _Optional[_Union[ConfigOperation, str]] = ..., value: _Optional[str] = ...) -> None: ...

class AlterConfigsRequest(_message.Message):
    __slots__ = ("resources", "validate_only")
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[ResourceChanges]
    validate_only: bool
    def __init__(self, resources: _Optional[_Iterable[_Union[ResourceChanges, _Mapping]]] = ..., validate_only: bool = ...) -> None: ...

class ResourceChanges(_message.Message):
    __slots__ = ("resource", "changes")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    changes: _containers.RepeatedCompositeFieldContainer[ConfigChange]
    def __init__(self, resource: _Optional[_Union[ConfigResource, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[ConfigChange, _Mapping]]] = ...) -> None: ...

class AlterConfigsReply(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[ResourceResult]
    def __init__(self, resources: _Optional[_Iterable[_Union[ResourceResult, _Mapping]]] = ...) -> None: ...

class ResourceResult(_message.Message):
    __slots__ = ("resource", "error")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    error: _common_pb2.Error
    def __init__(self, resource: _Optional[_Union[ConfigResource, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class DescribeConfigsRequest(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[ConfigResource]
    def __init__(self, resources: _Optional[_Iterable[_Union[ConfigResource, _Mapping]]] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("name", "value", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    source: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class DescribeConfigsReply(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[ResourceConfigs]
    def __init__(self, resources: _Optional[_Iterable[_Union[ResourceConfigs, _Mapping]]] = ...) -> None: ...

class ResourceConfigs(_message.Message):
    __slots__ = ("resource", "error", "entries")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    error: _common_pb2.Error
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    def __init__(self, resource: _Optional[_Union[ConfigResource, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ...) -> None: ...

class TopicPartition(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...

class ElectLeadersRequest(_message.Message):
    __slots__ = ("type", "partitions")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    type: ElectionType
    partitions: _containers.RepeatedCompositeFieldContainer[TopicPartition]
    def __init__(self, type: _Optional[_Union[ElectionType, str]] = ..., partitions: _Optional[_Iterable[_Union[TopicPartition, _Mapping]]] = ...) -> None: ...

class PartitionResult(_message.Message):
    __slots__ = ("partition", "error")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    partition: TopicPartition
    error: _common_pb2.Error
    def __init__(self, partition: _Optional[_Union[TopicPartition, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class ElectLeadersReply(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionResult]
    def __init__(self, partitions: _Optional[_Iterable[_Union[PartitionResult, _Mapping]]] = ...) -> None: ...

class ReassignRequest(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[Reassignment]
    def __init__(self, partitions: _Optional[_Iterable[_Union[Reassignment, _Mapping]]] = ...) -> None: ...

class Reassignment(_message.Message):
    __slots__ = ("partition", "target")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    partition: TopicPartition
    target: Replicas
    def __init__(self, partition: _Optional[_Union[TopicPartition, _Mapping]] = ..., target: _Optional[_Union[Replicas, _Mapping]] = ...) -> None: ...

class ReassignReply(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionResult]
    def __init__(self, partitions: _Optional[_Iterable[_Union[PartitionResult, _Mapping]]] = ...) -> None: ...

class ListReassignmentsRequest(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[TopicPartition]
    def __init__(self, partitions: _Optional[_Iterable[_Union[TopicPartition, _Mapping]]] = ...) -> None: ...

class ListReassignmentsReply(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[OngoingReassignment]
    def __init__(self, partitions: _Optional[_Iterable[_Union[OngoingReassignment, _Mapping]]] = ...) -> None: ...

class OngoingReassignment(_message.Message):
    __slots__ = ("partition", "replicas", "adding", "removing")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ADDING_FIELD_NUMBER: _ClassVar[int]
    REMOVING_FIELD_NUMBER: _ClassVar[int]
    partition: TopicPartition
    replicas: _containers.RepeatedScalarFieldContainer[int]
    adding: _containers.RepeatedScalarFieldContainer[int]
    removing: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[_Union[TopicPartition, _Mapping]] = ..., replicas: _Optional[_Iterable[int]] = ..., adding: _Optional[_Iterable[int]] = ..., removing: _Optional[_Iterable[int]] = ...) -> None: ...

class UpdateFeaturesRequest(_message.Message):
    __slots__ = ("updates", "validate_only")
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    updates: _containers.RepeatedCompositeFieldContainer[FeatureUpdate]
    validate_only: bool
    def __init__(self, updates: _Optional[_Iterable[_Union[FeatureUpdate, _Mapping]]] = ..., validate_only: bool = ...) -> None: ...

class FeatureUpdate(_message.Message):
    __slots__ = ("name", "level", "allow_downgrade", "unsafe")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ALLOW_DOWNGRADE_FIELD_NUMBER: _ClassVar[int]
    UNSAFE_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: int
    allow_downgrade: bool
    unsafe: bool
    def __init__(self, name: _Optional[str] = ..., level: _Optional[int] = ..., allow_downgrade: bool = ..., unsafe: bool = ...) -> None: ...

class UpdateFeaturesReply(_message.Message):
    __slots__ = ("features",)
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    features: _containers.RepeatedCompositeFieldContainer[NamedResult]
    def __init__(self, features: _Optional[_Iterable[_Union[NamedResult, _Mapping]]] = ...) -> None: ...

class DescribeClusterRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeClusterReply(_message.Message):
    __slots__ = ("cluster_id", "controller_id", "epoch", "brokers", "topics", "partitions", "features")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    controller_id: int
    epoch: int
    brokers: _containers.RepeatedCompositeFieldContainer[BrokerState]
    topics: int
    partitions: int
    features: _containers.ScalarMap[str, int]
    def __init__(self, cluster_id: _Optional[bytes] = ..., controller_id: _Optional[int] = ..., epoch: _Optional[int] = ..., brokers: _Optional[_Iterable[_Union[BrokerState, _Mapping]]] = ..., topics: _Optional[int] = ..., partitions: _Optional[int] = ..., features: _Optional[_Mapping[str, int]] = ...) -> None: ...

class BrokerState(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "incarnation_id", "endpoint", "rack", "fenced", "in_controlled_shutdown", "fence_cause", "heartbeat_ago_ms", "applied_offset", "leaders", "replicas")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    IN_CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    FENCE_CAUSE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_AGO_MS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADERS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    endpoint: _common_pb2.Endpoint
    rack: str
    fenced: bool
    in_controlled_shutdown: bool
    fence_cause: str
    heartbeat_ago_ms: int
    applied_offset: int
    leaders: int
    replicas: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., endpoint: _Optional[_Union[_common_pb2.Endpoint, _Mapping]] = ..., rack: _Optional[str] = ..., fenced: bool = ..., in_controlled_shutdown: bool = ..., fence_cause: _Optional[str] = ..., heartbeat_ago_ms: _Optional[int] = ..., applied_offset: _Optional[int] = ..., leaders: _Optional[int] = ..., replicas: _Optional[int] = ...) -> None: ...

class DescribeTopicsRequest(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicRef]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicRef, _Mapping]]] = ...) -> None: ...

class DescribeTopicsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicState]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicState, _Mapping]]] = ...) -> None: ...

class TopicState(_message.Message):
    __slots__ = ("name", "error", "topic_id", "partitions", "configs")
    class ConfigsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: _common_pb2.Error
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionState]
    configs: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[PartitionState, _Mapping]]] = ..., configs: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PartitionState(_message.Message):
    __slots__ = ("partition", "leader_id", "leader_epoch", "partition_epoch", "replicas", "isr", "elr", "last_known_elr", "adding", "removing", "recovering")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    ELR_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_ELR_FIELD_NUMBER: _ClassVar[int]
    ADDING_FIELD_NUMBER: _ClassVar[int]
    REMOVING_FIELD_NUMBER: _ClassVar[int]
    RECOVERING_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    elr: _containers.RepeatedScalarFieldContainer[int]
    last_known_elr: _containers.RepeatedScalarFieldContainer[int]
    adding: _containers.RepeatedScalarFieldContainer[int]
    removing: _containers.RepeatedScalarFieldContainer[int]
    recovering: bool
    def __init__(self, partition: _Optional[int] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., elr: _Optional[_Iterable[int]] = ..., last_known_elr: _Optional[_Iterable[int]] = ..., adding: _Optional[_Iterable[int]] = ..., removing: _Optional[_Iterable[int]] = ..., recovering: bool = ...) -> None: ...
