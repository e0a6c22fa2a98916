import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftctl.formats import Record, iso, parse_format, parse_line, record_json
from kraftlog.errors import ConfigError
from kraftlog.records import ConsumerRecord


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: tuple[tuple[str, bytes], ...] = (),
) -> Record:
    return ConsumerRecord(
        topic="t",
        partition=3,
        offset=7,
        timestamp=1_700_000_000_123,
        key=key,
        value=value,
        headers=headers,
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("%v", "v"),
        ("%t-%p@%o", "t-3@7"),
        ("%k\\t%v\\n", "k\tv\n"),
        ("%T %d", "1700000000123 2023-11-14T22:13:20.123+00:00"),
        ("%{key:hex}=%{value:hex}", "6b=76"),
        ("100%%", "100%"),
        ("%h", "a=1"),
    ],
)
def test_a_format_writes_fields(text: str, written: str) -> None:
    assert parse_format(text)(record(headers=(("a", b"1"),))) == written


@pytest.mark.parametrize("text", ["%x", "%", "%{key:rot13}", "%{key"])
def test_a_field_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="there are"):
        parse_format(text)


def test_null_is_visible() -> None:
    assert parse_format("%k|%v|%{value:hex}")(record(None, None)) == "NULL|NULL|NULL"


@given(
    st.none() | st.binary(max_size=20),
    st.none() | st.binary(max_size=20),
    st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=3),
)
def test_json_goes_there_and_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]]
) -> None:
    line = json.dumps(record_json(record(key, value, tuple(headers))))
    assert parse_line(line) == (key, value, headers)


@pytest.mark.parametrize("line", ["", "[1]", "{", '{"value_base64": "!"}', '{"headers": [1]}'])
def test_a_line_that_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(ConfigError, match="no record"):
        parse_line(line)


def test_values_that_are_json_are_taken_as_they_are() -> None:
    assert parse_line('{"value": {"a": 1}}') == (None, b'{"a": 1}', [])


def test_times_are_in_utc() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000+00:00"
