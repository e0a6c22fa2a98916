"""Messages of any protobuf type, filled with what nobody should send: by way of their JSON form.

No value is the id of a node that there is, nor the name of a topic.
"""

import base64
from collections.abc import Mapping
from typing import TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from hypothesis import strategies as st

Document: TypeAlias = dict[str, object]
Values: TypeAlias = st.SearchStrategy[object]

DEPTH_MAX = 4
LENGTH_MAX = 3
INT32 = [-(2**31), -5, -1, 0, 7, 250, 2**31 - 1]
INT64 = [-(2**63), -5, -1, 0, 7, 2**31, 2**63 - 1]
REALS = ["NaN", "Infinity", -1.0, 0.0, 1e30]
TEXTS = [
    "",
    "a",
    ".",
    "..",
    "/",
    "../../etc",
    "a\nb",
    "a\0b",
    "é",
    "x" * 250,
    "x" * 5_000,
    "\u202e",
]
BYTES = [b"", b"\0", b"x" * 15, bytes(16), b"\xff" * 16, b"x" * 17, b"\xff" * 3_000]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


_int32, _int64 = st.sampled_from(INT32), st.sampled_from(INT64)
_real, _text = st.sampled_from(REALS), st.sampled_from(TEXTS)
_OF_CPP_TYPE: Mapping[int, Values] = {
    FieldDescriptor.CPPTYPE_INT32: _int32,
    FieldDescriptor.CPPTYPE_INT64: _int64,
    FieldDescriptor.CPPTYPE_UINT32: _int32.filter(lambda number: number >= 0),
    FieldDescriptor.CPPTYPE_UINT64: _int64.filter(lambda number: number >= 0),
    FieldDescriptor.CPPTYPE_FLOAT: _real,
    FieldDescriptor.CPPTYPE_DOUBLE: _real,
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_ENUM: st.sampled_from([0, 1, 2, 99]),
}
_bytes = (st.sampled_from(BYTES) | st.binary(max_size=200)).map(_encoded)


def messages(kind: type[Message]) -> st.SearchStrategy[Message]:
    documents = _documents(type_of(kind.DESCRIPTOR.full_name), DEPTH_MAX)
    return documents.map(lambda each: ParseDict(each, kind()))


def type_of(full_name: str) -> Descriptor:
    return Default().FindMessageTypeByName(full_name)


def _documents(kind: Descriptor, depth: int) -> st.SearchStrategy[Document]:
    if not depth:
        return st.just({})
    fields = {field.name: _values(field, depth) for field in kind.fields}
    alternatives = [[field.name for field in each.fields] for each in kind.oneofs]
    return st.fixed_dictionaries({}, optional=fields).map(
        lambda document: _one_of_each(document, alternatives)
    )


def _one_of_each(document: Document, alternatives: list[list[str]]) -> Document:
    for names in alternatives:
        for name in [name for name in names if name in document][1:]:
            del document[name]
    return document


def _values(field: FieldDescriptor, depth: int) -> Values:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        values = _values(inner.fields_by_name["value"], depth - 1)
        return st.dictionaries(_text, values, max_size=LENGTH_MAX)
    single = _single(field, depth)
    return st.lists(single, max_size=LENGTH_MAX) if field.is_repeated else single


def _single(field: FieldDescriptor, depth: int) -> Values:
    if field.message_type is not None:
        return _documents(field.message_type, depth - 1)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes
    return _OF_CPP_TYPE.get(field.cpp_type, _text)
