"""How records are written and read as text.

A format is text with fields of a record in it, as in kcat and rpk:

    %t %p %o %k %v %h %T       topic, partition, offset, key, value, headers, timestamp (ms)
    %d                         the timestamp as a date
    %{key:hex} %{value:hex}    as hexadecimal digits
    \\n \\t %%                   a new line, a tab, a percent sign
"""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from kraftctl.output import Json
from kraftlog.errors import ConfigError
from kraftlog.records import ConsumerRecord

Record = ConsumerRecord[bytes, bytes]

NULL = "NULL"


def _text(raw: bytes | None) -> str:
    return NULL if raw is None else raw.decode(errors="replace")


def _hex(raw: bytes | None) -> str:
    return NULL if raw is None else raw.hex()


def _headers(record: Record) -> str:
    return ",".join(f"{name}={_text(value)}" for name, value in record.headers)


def iso(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds")


_FIELDS: Mapping[str, Callable[[Record], str]] = {
    "t": lambda record: record.topic,
    "p": lambda record: str(record.partition),
    "o": lambda record: str(record.offset),
    "k": lambda record: _text(record.key),
    "v": lambda record: _text(record.value),
    "h": _headers,
    "T": lambda record: str(record.timestamp),
    "d": lambda record: iso(record.timestamp),
    "%": lambda _: "%",
}
_LONG: Mapping[str, Callable[[Record], str]] = {
    "key:hex": lambda record: _hex(record.key),
    "value:hex": lambda record: _hex(record.value),
}
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}

Format = Callable[[Record], str]


def parse_format(text: str) -> Format:
    """A function that writes a record that way."""
    pieces: list[str | Callable[[Record], str]] = []
    rest = text
    while rest:
        piece, rest = _piece(rest, text)
        pieces.append(piece)

    def write(record: Record) -> str:
        return "".join(each if isinstance(each, str) else each(record) for each in pieces)

    return write


def _piece(rest: str, text: str) -> tuple[str | Callable[[Record], str], str]:
    if rest.startswith("%{"):
        name, closed, after = rest[2:].partition("}")
        if not closed or name not in _LONG:
            raise ConfigError(f"format {text!r}: %{{{name}}}", hint=f"there are {', '.join(_LONG)}")
        return _LONG[name], after
    if rest[0] == "%":
        field = rest[1:2]
        if field not in _FIELDS:
            known = " ".join(f"%{each}" for each in _FIELDS)
            raise ConfigError(f"format {text!r}: %{field}", hint=f"there are {known}")
        return _FIELDS[field], rest[2:]
    if rest[0] == "\\" and rest[1:2] in _ESCAPES:
        return _ESCAPES[rest[1]], rest[2:]
    return rest[0], rest[1:]


def record_json(record: Record) -> Json:
    """What is not text is given in base64, under a name of its own."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_value("key", record.key),
        **_value("value", record.value),
        "headers": [{"name": name, **_value("value", value)} for name, value in record.headers],
    }


def _value(name: str, raw: bytes | None) -> dict[str, Json]:
    if raw is None:
        return {name: None}
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def parse_line(line: str) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    """Key, value and headers of a line that `consume -o jsonl` could have written."""
    try:
        document = json.loads(line)
        headers = document.get("headers", [])
        return (
            _raw(document, "key"),
            _raw(document, "value"),
            [(str(each["name"]), _raw(each, "value") or b"") for each in headers],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"no record: {line[:80]!r} ({error})", hint='it looks like {"key": "a", "value": "b"}'
        ) from None


def _raw(document: Mapping[str, object], name: str) -> bytes | None:
    coded = document.get(f"{name}_base64")
    if isinstance(coded, str):
        return base64.b64decode(coded, validate=True)
    value = document.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()
