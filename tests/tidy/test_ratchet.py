"""The ratchet turns one way only."""

from tests.tidy.ratchet import complaints


def test_what_is_allowed_passes() -> None:
    assert complaints({"nesting: a": 4}, {"nesting: a": 4}) == []


def test_what_is_new_or_grew_fails() -> None:
    assert complaints({"nesting: a": 4}, {}) == ["nesting: a is 4"]
    assert complaints({"nesting: a": 5}, {"nesting: a": 4}) == ["nesting: a is 5, was 4"]


def test_what_shrank_must_be_tightened() -> None:
    assert complaints({"nesting: a": 4}, {"nesting: a": 5}) == [
        "nesting: a shrank from 5 to 4: tighten its entry"
    ]
    assert complaints({}, {"nesting: a": 5}) == [
        "nesting: a shrank from 5 to within budget: tighten its entry"
    ]
