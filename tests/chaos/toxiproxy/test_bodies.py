import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.toxiproxy import bodies
from chaos.toxiproxy.bodies import ApiError


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_bad_body(body: bytes) -> None:
    with contextlib.suppress(ApiError):
        bodies.parse(body)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_shown_as_briefly_as_it_can_be(number: float) -> None:
    shown = bodies.float_field({"x": number}, "x", 0.0)
    assert struct.pack("f", shown) == struct.pack("f", number)
    assert len(f"{shown:.9g}") <= len(f"{number:.9g}")


def test_null_leaves_a_field_as_it_was() -> None:
    assert bodies.text_field({"a": None}, "a", "as it was") == "as it was"
    assert bodies.int_field({}, "a", 7) == 7
    assert bodies.bool_field({"a": None}, "a", default=True)
    assert bodies.float_field({"a": None}, "a", 0.5) == 0.5


@pytest.mark.parametrize("value", [1e39, "1", True, [], {}])
def test_what_is_no_float32(value: bodies.Json) -> None:
    with pytest.raises(ApiError, match="of type float32"):
        bodies.float_field({"x": value}, "x", 0.0)


def test_keys_match_in_any_case_and_only_the_first_value_counts() -> None:
    assert bodies.parse(b' {"Name": {"TOXIC": 1}} trailing') == {"name": {"toxic": 1}}
