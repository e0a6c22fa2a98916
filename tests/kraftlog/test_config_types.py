import math
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.config_types import (
    FLOAT64_MAX,
    INT32_MAX,
    INT64_MAX,
    Address,
    Addresses,
    Boolean,
    Choice,
    DurationMs,
    Integer,
    NameSet,
    OptionalText,
    Paths,
    Real,
    Refused,
    ThrottledReplicas,
    ValueType,
)

T = TypeVar("T")

raw_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def read_and_write(value_type: ValueType[T], raw: object) -> None:
    """Any value is read or refused, and what was read can be written and read again."""
    try:
        value = value_type.parse(raw)
    except Refused as refused:
        assert str(refused).startswith("must ")  # noqa: PT017 - either outcome is right
    else:
        assert value_type.parse(value_type.show(value)) == value


@given(raw_values)
def test_any_value_is_read_or_refused(raw: object) -> None:
    read_and_write(Integer(-1), raw)
    read_and_write(DurationMs(0, INT32_MAX), raw)
    read_and_write(Real(0, 1), raw)
    read_and_write(Boolean(), raw)
    read_and_write(Choice({"CreateTime": 0, "LogAppendTime": 1}), raw)
    read_and_write(NameSet(("compact", "delete")), raw)
    read_and_write(Paths(), raw)
    read_and_write(OptionalText(), raw)
    read_and_write(Address(), raw)
    read_and_write(Addresses(), raw)
    read_and_write(ThrottledReplicas(), raw)


@given(st.integers(-(2**70), 2**70))
def test_an_integer_is_the_same_as_number_and_as_text(number: int) -> None:
    value_type = Integer(-1, INT32_MAX)
    if -1 <= number <= INT32_MAX:
        assert value_type.parse(number) == value_type.parse(f" {number} ") == number
    else:
        for raw in (number, str(number)):
            with pytest.raises(Refused, match="from -1 to 2147483647"):
                value_type.parse(raw)


@pytest.mark.parametrize(
    "raw", [True, 1.0, "1.0", "0x10", "1_000", "", " ", "٣", "9" * 10_000, None, [1], b"1"]
)
def test_what_only_looks_like_an_integer_is_refused(raw: object) -> None:
    with pytest.raises(Refused, match="a whole number of at least 0"):
        Integer(0).parse(raw)


@pytest.mark.parametrize(
    ("raw", "milliseconds"),
    [
        (5_000, 5_000),
        ("5000", 5_000),
        ("5000ms", 5_000),
        ("5s", 5_000),
        ("5 s", 5_000),
        ("2m", 120_000),
        ("3h", 10_800_000),
        ("7d", 604_800_000),
        (-1, -1),
        ("-1", -1),
    ],
)
def test_a_duration_is_milliseconds_or_has_a_unit(raw: object, milliseconds: int) -> None:
    assert DurationMs(-1).parse(raw) == milliseconds


@pytest.mark.parametrize("raw", ["-1s", "5", "5 sec", "s", "1.5h", 5.0, True, "5S", "9" * 21 + "d"])
def test_a_duration_that_is_none_or_out_of_range(raw: object) -> None:
    with pytest.raises(Refused, match="from 6 to 10000, or a number with ms, s, m, h, d"):
        DurationMs(6, 10_000).parse(raw)


def test_a_duration_with_a_unit_is_held_to_the_range_too() -> None:
    with pytest.raises(Refused):
        DurationMs(0).parse(f"{INT64_MAX}d")


def test_a_real_number() -> None:
    assert Real(0, 1).parse("0.5") == Real(0, 1).parse(0.5) == 0.5
    assert Real(0, 1).parse(1) == Real(0, 1).parse("1e0") == 1.0
    assert Real(1, FLOAT64_MAX).parse(FLOAT64_MAX) == FLOAT64_MAX


@pytest.mark.parametrize(
    "raw", [math.nan, "nan", math.inf, "inf", -0.1, "1e999", 10**400, "1_0", True]
)
def test_what_is_no_real_number_in_range_is_refused(raw: object) -> None:
    with pytest.raises(Refused, match="a number of at least 0"):
        Real(0, FLOAT64_MAX).parse(raw)


def test_true_and_false_and_nothing_else() -> None:
    assert Boolean().parse(True) is Boolean().parse("TRUE ") is True
    assert Boolean().parse(False) is Boolean().parse("false") is False
    for raw in (1, 0, "yes", "", None):
        with pytest.raises(Refused, match="true or false"):
            Boolean().parse(raw)


def test_a_choice_is_spelt_exactly() -> None:
    choice = Choice({"CreateTime": 0, "LogAppendTime": 1})
    assert choice.parse(" LogAppendTime") == 1
    assert choice.show(1) == "LogAppendTime"
    for raw in ("createtime", "", 0, None):
        with pytest.raises(Refused, match="CreateTime or LogAppendTime"):
            choice.parse(raw)


def test_names_come_as_text_or_list() -> None:
    policies = NameSet(("compact", "delete"))
    both = {"compact", "delete"}
    assert policies.parse("compact, delete") == policies.parse(["delete", "compact"]) == both
    for raw in ("", "compact,", "compact,keep", [], [1], {"compact": 1}):
        with pytest.raises(Refused, match="one or more of compact, delete"):
            policies.parse(raw)


def test_paths_come_as_text_or_list_and_none_twice() -> None:
    assert Paths().parse("/a, /b c") == Paths().parse(["/a", "/b c"]) == ("/a", "/b c")
    for raw in ("", "/a,,/b", ["/a", ""], ["/a,b"], ["/a\0"], 7):
        with pytest.raises(Refused, match="one or more directories"):
            Paths().parse(raw)
    with pytest.raises(Refused, match="twice"):
        Paths().parse("/a,/a/")


@pytest.mark.parametrize("text", ["localhost:1", "10.0.0.1:65535", "[::1]:0", " a-b.c_d:80 "])
def test_an_address_has_a_host_and_a_port(text: str) -> None:
    assert Address().parse(text) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":1", "host:65536", "host:1:2", "::1:9", "a b:1", "host:x", 9]
)
def test_what_is_no_address_is_refused(text: object) -> None:
    with pytest.raises(Refused, match=r"must be host:port$"):
        Address().parse(text)


def test_addresses_are_a_list_or_text() -> None:
    assert Addresses().parse("a:1, b:2") == Addresses().parse(["a:1", "b:2"]) == ("a:1", "b:2")
    assert Addresses().parse("") == Addresses().parse([]) == Addresses().parse("none") == ()
    with pytest.raises(Refused, match="twice"):
        Addresses().parse("a:1,a:1")
    with pytest.raises(Refused, match="host:port, or none"):
        Addresses(1).parse("a:1,b:2")


def test_throttled_replicas_are_pairs_or_a_star() -> None:
    assert ThrottledReplicas().parse("0:1, 12:3") == ("0:1", "12:3")
    assert ThrottledReplicas().parse("*") == ("*",)
    assert ThrottledReplicas().parse("none") == ThrottledReplicas().parse("") == ()
    for wrong in ("0", "0:1,*", "0:", "a:b", "0:1,,0:2", 7):
        with pytest.raises(Refused, match="must be a list like 0:1,0:2"):
            ThrottledReplicas().parse(wrong)


def test_a_text_may_be_none_and_has_one_line() -> None:
    assert OptionalText().parse("rack 1") == "rack 1"
    assert OptionalText().parse("none") is None
    assert OptionalText().parse("") is None
    for wrong in (" x", "x\n", "a\nb", 1, None):
        with pytest.raises(Refused, match="one line of text, or none"):
            OptionalText().parse(wrong)
