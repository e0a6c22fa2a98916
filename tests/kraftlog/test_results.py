import pytest

from kraftlog.errors import InvalidRequest, KraftError, TopicExists
from kraftlog.results import Results


def test_a_result_or_an_error_for_each() -> None:
    error = TopicExists("b is there")
    results: Results[str, int] = Results({"a": 1, "b": error})
    assert results["a"] == 1
    with pytest.raises(TopicExists):
        results["b"]
    assert results.ok == {"a": 1}
    assert results.errors == {"b": error}
    assert (len(results), list(results), "b" in results) == (2, ["a", "b"], True)
    assert "TopicExists" in repr(results)


def test_the_first_error_is_raised_with_the_others_as_notes() -> None:
    outcomes: dict[str, int | KraftError] = {
        "a": TopicExists("one"),
        "b": InvalidRequest("two"),
        "c": 3,
    }
    with pytest.raises(TopicExists) as raised:
        Results(outcomes).raise_for_errors()
    assert raised.value.__notes__ == ["also b: INVALID_REQUEST: two"]
    fine: Results[str, int] = Results({"c": 3})
    assert fine.raise_for_errors() is fine
