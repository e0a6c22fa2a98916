"""Events as lines."""

import json

import pytest

from kraftlog.record_batch import Record, RecordBatch, encode_batch
from storage.dump_events import Event, FileBegin, FileEnd, Finding, Kind, Row, Severity
from storage.dump_fields import batch_fields, record_fields
from storage.dump_format import SHOWN_CHARS_MAX, JsonWriter, TableWriter, Writer, escaped

BEGIN = FileBegin(path="a.log", kind=Kind.LOG, size=100, facts={"baseOffset": 0})
END = FileEnd({"batches": 1})
FINDING = Finding(
    path="a.log", severity=Severity.DAMAGE, what="bad", position=3, offset=1, hint="mend it"
)


def batch_row(record: Record, *, is_valid: bool = True, producer_id: int = -1) -> Row:
    batch = RecordBatch(encode_batch([record], producer_id=producer_id))
    return Row(Kind.LOG, batch_fields(batch, 0, is_valid=is_valid), [record_fields(batch, record)])


RECORD = Record(5, 1_000, b"key", b"value", (("h", b"x"), ("n", None)))


def lines(writer: Writer, *events: Event) -> list[str]:
    return [line for event in events for line in writer.lines(event)]


def table(*events: Event, verify: bool = False) -> list[str]:
    return lines(TableWriter(verify=verify), *events)


# -- JSON


def test_each_line_is_an_object_that_names_its_type_and_file() -> None:  # R28
    found = [json.loads(line) for line in lines(JsonWriter(), BEGIN, batch_row(RECORD), END)]
    assert [(each["type"], each["file"]) for each in found] == [
        ("file", "a.log"),
        ("batch", "a.log"),
        ("record", "a.log"),
        ("fileEnd", "a.log"),
    ]
    assert found[0]["kind"] == "log"
    assert found[1]["baseOffset"] == 5
    assert found[2]["value"] == "value"


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.OTHER])
def test_every_kind_of_row_has_a_type_and_a_line(kind: Kind) -> None:
    row = batch_row(RECORD) if kind in (Kind.LOG, Kind.METADATA_SNAPSHOT) else None
    fields = row.fields if row else dict.fromkeys(_FIELDS.get(kind, ("offset",)), 1)
    event = Row(kind, fields)
    (line,) = lines(JsonWriter(), event)
    assert json.loads(line)["type"]
    assert "1" in table(event)[-1]


_FIELDS = {
    Kind.OFFSET_INDEX: ("offset", "position"),
    Kind.TIME_INDEX: ("timestamp", "offset"),
    Kind.PRODUCERS: (
        "producerId",
        "producerEpoch",
        "lastSequence",
        "lastOffset",
        "offsetDelta",
        "lastTimestamp",
        "coordinatorEpoch",
        "currentTxnFirstOffset",
    ),
    Kind.EPOCHS: ("epoch", "startOffset"),
}


def test_a_finding_as_an_object() -> None:
    (line,) = lines(JsonWriter(), FINDING)
    assert json.loads(line) == {
        "type": "finding",
        "file": "a.log",
        "severity": "damage",
        "position": 3,
        "offset": 1,
        "what": "bad",
        "bytesSkipped": None,
        "resumedAt": None,
        "hint": "mend it",
    }


def test_json_is_plain_ascii_whatever_the_data() -> None:
    found = lines(JsonWriter(), FileBegin(path="ü\udc80", kind=Kind.LOG, size=0, facts={}))
    assert all(line.isascii() for line in found)


def test_summaries() -> None:
    facts = {"files": 2, "damage": 1}
    assert list(JsonWriter().summary(facts)) == ['{"type":"summary","files":2,"damage":1}']
    assert list(TableWriter(verify=True).summary(facts)) == ["files 2, damage 1"]


# -- table


def test_a_file_in_a_table() -> None:  # R28
    found = table(BEGIN, batch_row(RECORD), batch_row(RECORD, producer_id=7), END)
    assert found[0] == "== a.log (log, bytes 100, baseOffset 0)"
    assert found[1].split()[:3] == ["position", "offsets", "count"]
    assert found[2].split()[:3] == ["0", "5-5", "1"]
    assert found[3] == '    | 5  1000  key="key"  value="value"  headers="h": "x", "n": null'
    assert "producer=7" in found[4]
    assert found[-1] == "   batches 1"


def test_columns_stand_under_their_titles() -> None:
    row = batch_row(RECORD)
    _, titles, batch, *_ = table(BEGIN, row)
    for title, value in (("position", "0"), ("offsets", "5-5"), ("size", str(row.fields["size"]))):
        end = titles.index(title) + len(title)
        assert batch[:end].endswith(" " + value)


def test_a_wrong_crc_stands_out() -> None:
    assert "CRC-WRONG" in table(BEGIN, batch_row(RECORD, is_valid=False))[2]
    assert "CRC-WRONG" not in "".join(table(BEGIN, batch_row(RECORD)))


def test_a_finding_with_its_hint() -> None:
    assert table(FINDING) == ["DAMAGE: a.log: byte 3, offset 1: bad", "  hint: mend it"]


def test_verify_gives_each_file_one_line() -> None:
    assert table(BEGIN, END, verify=True) == ["ok       a.log (batches 1)"]
    assert table(BEGIN, FINDING, END, verify=True)[-1] == "damaged  a.log (batches 1)"


def test_damage_of_one_file_is_not_held_against_the_next() -> None:
    assert table(BEGIN, FINDING, END, BEGIN, END, verify=True)[-1].startswith("ok")


def test_a_long_value_is_cut_and_says_how_long_it_is() -> None:
    row = batch_row(RECORD._replace(value=b"x" * 1_000))
    line = table(BEGIN, row)[3]
    assert "x" * SHOWN_CHARS_MAX + '"... (1000 characters)' in line
    assert "x" * (SHOWN_CHARS_MAX + 1) not in line


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x9b2J", "\u202e", "\x7f", "a\nb", "\r"])
def test_nothing_that_a_terminal_obeys_gets_through(evil: str) -> None:
    record = Record(5, 1, evil.encode(), evil.encode(), ((evil, evil.encode()),))
    begin = FileBegin(path=evil, kind=Kind.LOG, size=0, facts={})
    finding = Finding(path=evil, severity=Severity.DAMAGE, what="bad")
    found = table(begin, batch_row(record), finding, END)
    assert all(line.isprintable() for line in found)


def test_text_that_is_printable_stays() -> None:
    assert escaped("größe 日本") == "größe 日本"
    assert escaped("a\x1b\udc80") == "a\\x1b\\udc80"
