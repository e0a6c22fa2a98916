from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RequestHeader(_message.Message):
    __slots__ = ("api_key", "api_version", "correlation_id", "client_id")
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    def __init__(self, api_key: _Optional[int] = ..., api_version: _Optional[int] = ..., correlation_id: _Optional[int] = ..., client_id: _Optional[str] = ...) -> None: ...

class Endpoint(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class NodeEndpoint(_message.Message):
    __slots__ = ("node_id", "endpoint")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    endpoint: Endpoint
    def __init__(self, node_id: _Optional[int] = ..., endpoint: _Optional[_Union[Endpoint, _Mapping]] = ...) -> None: ...

class VoterKey(_message.Message):
    __slots__ = ("node_id", "directory_id")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    directory_id: bytes
    def __init__(self, node_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class LeaderHint(_message.Message):
    __slots__ = ("epoch", "leader")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    leader: NodeEndpoint
    def __init__(self, epoch: _Optional[int] = ..., leader: _Optional[_Union[NodeEndpoint, _Mapping]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "hint", "leader")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    hint: str
    leader: LeaderHint
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., leader: _Optional[_Union[LeaderHint, _Mapping]] = ...) -> None: ...

class ApiVersionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ApiVersion(_message.Message):
    __slots__ = ("name", "api_key", "min_version", "max_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    api_key: int
    min_version: int
    max_version: int
    def __init__(self, name: _Optional[str] = ..., api_key: _Optional[int] = ..., min_version: _Optional[int] = ..., max_version: _Optional[int] = ...) -> None: ...

class ApiVersionsReply(_message.Message):
    __slots__ = ("versions", "software")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[ApiVersion]
    software: str
    def __init__(self, versions: _Optional[_Iterable[_Union[ApiVersion, _Mapping]]] = ..., software: _Optional[str] = ...) -> None: ...
