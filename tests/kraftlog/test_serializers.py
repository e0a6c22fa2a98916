import json

import pytest
from google.protobuf.wrappers_pb2 import Int32Value, StringValue
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import ConfigError, SerializationError
from kraftlog.serializers import (
    Deserializer,
    Serializer,
    find_deserializer,
    find_serializer,
    serialize,
)

INTEGERS = {"int16": 16, "int32": 32, "int64": 64}


def serializer_of(name: str) -> Serializer[object]:
    found: Serializer[object] | None = find_serializer(name, "value_serializer")
    assert found is not None
    return found


def deserializer_of(name: str) -> Deserializer[object]:
    found: Deserializer[object] | None = find_deserializer(name, "value_deserializer")
    assert found is not None
    return found


# R31: bytes, string, integers, JSON, Protobuf classes, any callable
@given(st.text())
def test_strings(text: str) -> None:
    data = serialize(serializer_of("string"), text, "value")
    assert data == text.encode()
    assert deserializer_of("string")(data) == text


@pytest.mark.parametrize("name", INTEGERS)
@given(data=st.data())
def test_integers_are_big_endian_as_kafka_writes_them(name: str, data: st.DataObject) -> None:
    bits = INTEGERS[name]
    number = data.draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    encoded = serialize(serializer_of(name), number, "value")
    assert encoded == number.to_bytes(bits // 8, "big", signed=True)
    assert deserializer_of(name)(encoded) == number


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_json(value: object) -> None:
    data = serialize(serializer_of("json"), value, "value")
    assert json.loads(data) == value
    assert deserializer_of("json")(data) == value


def test_json_is_compact_and_knows_no_nan() -> None:
    encode = serializer_of("json")
    assert encode({"a": ["é", 1]}) == '{"a":["é",1]}'.encode()
    with pytest.raises(SerializationError, match="value for t: ValueError"):
        serialize(encode, float("nan"), "value for t")


def test_protobuf_classes() -> None:
    encode: Serializer[object] | None = find_serializer(StringValue, "value_serializer")
    decode: Deserializer[object] | None = find_deserializer(StringValue, "value_deserializer")
    assert encode is not None
    assert decode is not None
    data = serialize(encode, StringValue(value="x"), "value")
    assert decode(data) == StringValue(value="x")
    with pytest.raises(SerializationError, match="no StringValue"):
        serialize(encode, Int32Value(value=1), "value")


def test_any_callable() -> None:
    encode = find_serializer(lambda number: bytearray(b"%d" % number), "value_serializer")
    assert encode is not None
    assert serialize(encode, 7, "value") == b"7"
    assert find_deserializer(int, "value_deserializer") is int


def test_bytes_pass_as_they_are() -> None:
    assert find_serializer("bytes", "value_serializer") is None
    data = b"x"
    assert serialize(None, data, "value") is data
    written = bytearray(b"y")
    copied = serialize(None, written, "value")
    written[0] = 0
    assert copied == b"y"


@pytest.mark.parametrize("value", ["text", 1, {"a": 1}])
def test_what_is_not_bytes_needs_a_serializer(value: object) -> None:
    with pytest.raises(SerializationError, match="choose a serializer"):
        serialize(None, value, "value for t")


@pytest.mark.parametrize("name", ["int32", "string"])
def test_a_value_of_another_type_is_refused(name: str) -> None:
    with pytest.raises(SerializationError, match="key for t"):
        serialize(serializer_of(name), 2**40, "key for t")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="key_serializer = 'avro'"):
        find_serializer("avro", "key_serializer")
    with pytest.raises(ConfigError, match="value_deserializer = 7"):
        find_deserializer(7, "value_deserializer")  # type: ignore[arg-type]
