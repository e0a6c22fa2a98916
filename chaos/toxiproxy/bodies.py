"""JSON as Go's encoding/json reads it into a struct, and the answers that it writes.

Keys match in any case, unknown ones are ignored, null leaves a field as it was, only the first
value of a body counts, and a number with a point is no integer.
"""

import json
import math
import struct
from collections.abc import Mapping
from typing import NoReturn, TypeAlias

from chaos.toxiproxy.toxics import INT64_MAX, INT64_MIN

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class ApiError(Exception):
    """An answer that is no success: `{"error": message, "status": status}`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def body(self) -> dict[str, Json]:
        return {"error": self.message, "status": self.status}


def bad_body(detail: str) -> ApiError:
    return ApiError(400, f"bad request body: {detail}")


def missing(field: str) -> ApiError:
    return ApiError(400, f"missing required field: {field}")


_WHITESPACE = " \t\r\n"


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"invalid character {word[0]!r} looking for beginning of value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=lambda pairs: {key.lower(): value for key, value in pairs},
    parse_constant=_refuse,
)


def parse(body: bytes) -> Json:
    """The first value of a body."""
    text = body.decode("utf-8", errors="replace").lstrip(_WHITESPACE)
    if not text:
        raise bad_body("EOF")
    try:
        value: Json = _DECODER.raw_decode(text)[0]
    except RecursionError:
        raise bad_body("exceeded max depth") from None
    except ValueError as error:
        raise bad_body(str(error)) from None
    return value


def parse_object(value: Json) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_body(f"json: cannot unmarshal {_kind(value)} into Go value of type object")
    return value


def parse_list(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise bad_body(f"json: cannot unmarshal {_kind(value)} into Go value of type array")
    return value


def text_field(fields: Mapping[str, Json], name: str, default: str) -> str:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _wrong(value, name, "string")
    return value


def bool_field(fields: Mapping[str, Json], name: str, *, default: bool) -> bool:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise _wrong(value, name, "bool")
    return value


def int_field(fields: Mapping[str, Json], name: str, default: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(value, name, "int64")
    if not INT64_MIN <= value <= INT64_MAX:
        raise _wrong(value, name, "int64")
    return value


def float_field(fields: Mapping[str, Json], name: str, default: float) -> float:
    """A float32, since that is what Toxiproxy keeps and shows."""
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, name, "float32")
    try:
        packed = struct.pack("f", value)
    except (OverflowError, struct.error):
        packed = struct.pack("f", math.inf)
    if math.isinf(struct.unpack("f", packed)[0]):
        raise _wrong(value, name, "float32")
    return _shortest(packed)


def _shortest(packed: bytes) -> float:
    """The number with the fewest digits that is this float32."""
    exact: float = struct.unpack("f", packed)[0]
    shorter = (float(f"{exact:.{digits}g}") for digits in range(1, 9))
    return next((number for number in shorter if struct.pack("f", number) == packed), exact)


def _wrong(value: Json, name: str, kind: str) -> ApiError:
    return bad_body(f"json: cannot unmarshal {_kind(value)} into Go field {name} of type {kind}")


def _kind(value: Json) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return f"number {value}"[:60]
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def dump(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
