"""Between the objects of a program and the bytes of a record.

A choice is a name, a Protobuf class, or any callable:

    bytes    as they are                    int16, int32, int64   big-endian, as Kafka's own
    string   UTF-8                          json                  UTF-8, without spaces

None is never serialized: it is a record without a key, or a tombstone.
"""

import json
import struct
from typing import Protocol, TypeVar, cast

from kraftlog.config_key import shorten
from kraftlog.errors import ConfigError, SerializationError
from kraftlog.types import Buffer

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)


class ProtobufMessage(Protocol):
    """What is used of a Protobuf message."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802  Protobuf's name

    @classmethod
    def FromString(cls, data: bytes) -> "ProtobufMessage": ...  # noqa: N802  Protobuf's name


class Serializer(Protocol[T_contra]):
    def __call__(self, value: T_contra, /) -> Buffer: ...


class Deserializer(Protocol[T_co]):
    def __call__(self, data: bytes, /) -> T_co: ...


SerializerChoice = Serializer[T] | type[ProtobufMessage] | str
DeserializerChoice = Deserializer[T] | type[ProtobufMessage] | str


def _to_string(value: object) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} is no str")
    return value.encode()


def _to_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _from_string(data: bytes) -> str:
    return str(data, "utf-8")


def _integer_serializer(layout: str) -> Serializer[object]:
    return struct.Struct(layout).pack


def _integer_deserializer(layout: str) -> Deserializer[object]:
    packed = struct.Struct(layout)
    return lambda data: packed.unpack(data)[0]


_SERIALIZERS: dict[str, Serializer[object] | None] = {
    "bytes": None,
    "string": _to_string,
    "json": _to_json,
    "int16": _integer_serializer(">h"),
    "int32": _integer_serializer(">i"),
    "int64": _integer_serializer(">q"),
}
_DESERIALIZERS: dict[str, Deserializer[object] | None] = {
    "bytes": None,
    "string": _from_string,
    "json": json.loads,
    "int16": _integer_deserializer(">h"),
    "int32": _integer_deserializer(">i"),
    "int64": _integer_deserializer(">q"),
}


def find_serializer(choice: SerializerChoice[T], name: str) -> Serializer[T] | None:
    """What turns a value into bytes; None where it has to be bytes already."""
    if isinstance(choice, str):
        return cast("Serializer[T] | None", _by_name(_SERIALIZERS, choice, name))
    if isinstance(choice, type) and hasattr(choice, "SerializeToString"):
        return _protobuf_serializer(choice)
    return cast("Serializer[T]", _callable(choice, name))


def find_deserializer(choice: DeserializerChoice[T], name: str) -> Deserializer[T] | None:
    """What turns bytes into a value; None where bytes are wanted."""
    if isinstance(choice, str):
        return cast("Deserializer[T] | None", _by_name(_DESERIALIZERS, choice, name))
    if isinstance(choice, type) and hasattr(choice, "FromString"):
        return cast("Deserializer[T]", choice.FromString)
    return cast("Deserializer[T]", _callable(choice, name))


def _by_name(table: dict[str, T], choice: str, name: str) -> T:
    if choice not in table:
        raise ConfigError(
            f"{name} = {choice!r} is not known",
            hint=f"use {', '.join(table)}, a Protobuf class or a callable",
        )
    return table[choice]


def _callable(choice: object, name: str) -> object:
    if not callable(choice):
        raise ConfigError(
            f"{name} = {shorten(choice)} cannot be called",
            hint="use a name, a Protobuf class or a callable",
        )
    return choice


def _protobuf_serializer(message_type: type[ProtobufMessage]) -> Serializer[object]:
    def serialize(value: object) -> bytes:
        if not isinstance(value, message_type):
            raise TypeError(f"a {type(value).__name__} is no {message_type.__name__}")
        return value.SerializeToString()

    return serialize


# -- applying them


def serialize(serializer: Serializer[T] | None, value: T, what: str) -> bytes:
    """The bytes of a value that is not None; `what` is "key" or "value" and its topic."""
    if serializer is None:
        return _as_bytes(value, what)
    try:
        data = serializer(value)
    except Exception as error:
        raise SerializationError(f"{what}: {type(error).__name__}: {error}") from error
    return data if data.__class__ is bytes else _as_bytes(data, what)


def _as_bytes(value: object, what: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)  # a copy: the caller may go on writing into it
    raise SerializationError(
        f"{what} is a {type(value).__name__}, not bytes", hint="choose a serializer for it"
    )
