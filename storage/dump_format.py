"""Events as lines of text: a table for people, or JSON with one object per line.

Nothing from a log reaches a terminal raw: what could move a cursor there is escaped.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from storage.dump_events import (
    Event,
    Fields,
    FileBegin,
    FileEnd,
    Finding,
    Json,
    Kind,
    Row,
    Severity,
)

SHOWN_CHARS_MAX = 120
"""How much of a key or value a table shows; JSON has all of it."""

_ROW_TYPES = {
    Kind.LOG: "batch",
    Kind.METADATA_SNAPSHOT: "batch",
    Kind.OFFSET_INDEX: "offsetIndexEntry",
    Kind.TIME_INDEX: "timeIndexEntry",
    Kind.PRODUCERS: "producer",
    Kind.EPOCHS: "epoch",
    Kind.RECOVERY_POINT: "recoveryPoint",
    Kind.OFFSETS: "partitionOffset",
    Kind.PARTITION_METADATA: "partitionMetadata",
    Kind.META_PROPERTIES: "metaProperties",
}


class Writer(Protocol):
    """Turns events into lines, each without its line end."""

    def lines(self, event: Event) -> Iterator[str]: ...
    def summary(self, facts: Fields) -> Iterator[str]: ...


class JsonWriter:
    """One object per line. Each names its `type` and its file, so that a line says it all."""

    def __init__(self) -> None:
        self._path = ""

    def lines(self, event: Event) -> Iterator[str]:
        return map(_json, self.objects(event))

    def objects(self, event: Event) -> Iterator[Fields]:
        if isinstance(event, FileBegin):
            self._path = event.path
            yield self._object("file", {"kind": event.kind, "size": event.size, **event.facts})
        elif isinstance(event, Row):
            yield self._object(_ROW_TYPES[event.kind], event.fields)
            for record in event.records or ():
                yield self._object("record", record)
        elif isinstance(event, Finding):
            yield {"type": "finding", "file": event.path, **_finding_fields(event)}
        else:
            yield self._object("fileEnd", event.facts)

    def summary(self, facts: Fields) -> Iterator[str]:
        yield _json({"type": "summary", **facts})

    def _object(self, kind: str, fields: Fields) -> Fields:
        return {"type": kind, "file": self._path, **fields}


def _json(fields: Fields) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _finding_fields(finding: Finding) -> Fields:
    return {
        "severity": finding.severity,
        "position": finding.position,
        "offset": finding.offset,
        "what": finding.what,
        "bytesSkipped": finding.bytes_skipped,
        "resumedAt": finding.resumed_at,
        "hint": finding.hint,
    }


class _Column(NamedTuple):
    title: str
    field: str
    width: int


_BATCH_COLUMNS = (
    _Column("position", "position", 10),
    _Column("offsets", "", 21),
    _Column("count", "count", 7),
    _Column("epoch", "partitionLeaderEpoch", 5),
    _Column("timestamp", "timestamp", 13),
    _Column("size", "size", 8),
    _Column("codec", "compresscodec", 6),
    _Column("crc", "", 10),
)


def _columns(*names: str) -> tuple[_Column, ...]:
    return tuple(_Column(name, name, max(13, len(name))) for name in names)


_COLUMNS: dict[Kind, tuple[_Column, ...]] = {
    Kind.OFFSET_INDEX: _columns("offset", "position"),
    Kind.TIME_INDEX: _columns("timestamp", "offset"),
    Kind.PRODUCERS: _columns(
        "producerId",
        "producerEpoch",
        "lastSequence",
        "lastOffset",
        "offsetDelta",
        "lastTimestamp",
        "coordinatorEpoch",
        "currentTxnFirstOffset",
    ),
    Kind.EPOCHS: _columns("epoch", "startOffset"),
}


class TableWriter:
    """A heading per file, its rows in columns, and a line with what was counted."""

    def __init__(self, *, verify: bool) -> None:
        self._verify = verify
        self._titled = False
        self._damaged = False
        self._path = ""

    def lines(self, event: Event) -> Iterator[str]:
        if isinstance(event, FileBegin):
            yield from self._begin(event)
        elif isinstance(event, Row):
            yield from self._row(event)
        elif isinstance(event, Finding):
            self._damaged |= event.severity is Severity.DAMAGE
            yield f"{event.severity.upper()}: {escaped(str(event))}"
            if event.hint:
                yield f"  hint: {event.hint}"
        else:
            yield from self._end(event)

    def summary(self, facts: Fields) -> Iterator[str]:
        yield _counted(facts)

    def _begin(self, begin: FileBegin) -> Iterator[str]:
        self._path = escaped(begin.path)
        self._titled = False
        self._damaged = False
        if not self._verify:
            facts = {"bytes": begin.size, **begin.facts}
            yield f"== {self._path} ({begin.kind}, {_counted(facts)})"

    def _end(self, end: FileEnd) -> Iterator[str]:
        if self._verify:
            verdict = "damaged" if self._damaged else "ok"
            yield f"{verdict:<8} {self._path} ({_counted(end.facts)})"
        else:
            yield f"   {_counted(end.facts)}"

    def _row(self, row: Row) -> Iterator[str]:
        if row.kind in (Kind.LOG, Kind.METADATA_SNAPSHOT):
            yield from self._titles(_BATCH_COLUMNS, "flags")
            yield _batch_line(row.fields)
            yield from map(_record_line, row.records or ())
        elif row.kind in _COLUMNS:
            columns = _COLUMNS[row.kind]
            yield from self._titles(columns)
            yield _aligned(columns, [str(row.fields[column.field]) for column in columns])
        else:
            yield " ".join(f"{name}={_text(value)}" for name, value in row.fields.items())

    def _titles(self, columns: Sequence[_Column], *more: str) -> Iterator[str]:
        if not self._titled:
            self._titled = True
            yield "  ".join([_aligned(columns, [column.title for column in columns]), *more])


def _aligned(columns: Sequence[_Column], values: Sequence[str]) -> str:
    cells = zip(values, columns, strict=True)
    return "  ".join(value.rjust(column.width) for value, column in cells)


def _batch_line(fields: Fields) -> str:
    computed = {
        "offsets": f"{fields['baseOffset']}-{fields['lastOffset']}",
        "crc": f"{fields['crc']:#010x}",
    }
    values = [
        computed[column.title] if column.title in computed else str(fields[column.field])
        for column in _BATCH_COLUMNS
    ]
    return "  ".join([_aligned(_BATCH_COLUMNS, values), *_flags(fields)])


def _flags(fields: Fields) -> Iterator[str]:
    if not fields["isvalid"]:
        yield "CRC-WRONG"
    if fields["producerId"] != -1:
        yield (
            f"producer={fields['producerId']} producerEpoch={fields['producerEpoch']}"
            f" sequence={fields['baseSequence']}-{fields['lastSequence']}"
        )
    for name, flag in (("isTransactional", "transactional"), ("isControl", "control")):
        if fields[name]:
            yield flag
    if fields["timestampType"] != "CreateTime":
        yield str(fields["timestampType"])
    if fields["deleteHorizonMs"] is not None:
        yield f"deleteHorizonMs={fields['deleteHorizonMs']}"


def _record_line(record: Fields) -> str:
    parts = [f"    | {record['offset']}  {record['timestamp']}"]
    if "controlType" in record:
        parts.append(str(record["controlType"]))
    parts += [f"key={_bytes_text(record, 'key')}", f"value={_bytes_text(record, 'value')}"]
    headers = record["headers"]
    if isinstance(headers, Sequence) and headers:
        parts.append("headers=" + ", ".join(map(_header_text, headers)))
    return "  ".join(parts)


def _header_text(header: Json) -> str:
    if not isinstance(header, Mapping):
        return ""
    return f"{_text(header['key'])}: {_bytes_text(header, 'value')}"


def _bytes_text(fields: Fields, name: str) -> str:
    """Text in quotes, other bytes as base64 without; cut where it gets long."""
    value = fields[name]
    if value is None:
        return "null"
    text = str(value)
    shown = text[:SHOWN_CHARS_MAX]
    rest = f"... ({len(text)} characters)" if len(text) > len(shown) else ""
    if fields[f"{name}Encoding"] == "base64":
        return f"base64:{shown}{rest}"
    return _text(shown) + rest


def _text(value: Json) -> str:
    return escaped(json.dumps(value, ensure_ascii=False))


def escaped(text: str) -> str:
    """The same text with all that is not printable escaped."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _counted(facts: Fields) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
