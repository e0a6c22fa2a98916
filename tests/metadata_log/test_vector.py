import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from metadata_log.vector import CHUNK, Vector

changes = st.lists(
    st.lists(st.tuples(st.integers(0, 3 * CHUNK), st.integers(0, 9)), max_size=CHUNK + 9),
    max_size=3,
)


@given(changes)
def test_it_is_a_list_that_keeps_its_old_versions(steps: list[list[tuple[int, int]]]) -> None:
    vector: Vector[int] = Vector()
    model: list[int] = []
    versions = []
    for step in steps:
        before, old = vector, list(model)
        values: dict[int, int] = {}
        for index, value in step:
            place = min(index, len(model))
            model[place : place + 1] = [value]
            values[place] = value
        vector = vector.changed(values)
        assert list(vector) == model
        assert len(vector) == len(model)
        assert set(vector.differing(before)) == {
            i for i, value in enumerate(model) if i >= len(old) or old[i] != value
        }
        versions.append((before, old))
    for before, old in versions:
        assert list(before) == old
    assert vector == Vector[int]().changed(dict(enumerate(model)))
    assert hash(vector) == hash(Vector[int]().changed(dict(enumerate(model))))


def test_what_did_not_change_is_shared() -> None:
    vector = Vector[int]().changed(dict.fromkeys(range(3 * CHUNK), 0))
    after = vector.changed({CHUNK: 1})
    assert after.chunk(0) is vector.chunk(0)
    assert after.chunk(2) is vector.chunk(2)
    assert after[CHUNK] == 1
    assert vector[CHUNK] == 0


def test_there_are_no_gaps_and_no_negative_indexes() -> None:
    vector = Vector[str]().changed({0: "a"})
    for wrong in (-1, 1):
        with pytest.raises(IndexError):
            vector[wrong]
    with pytest.raises(InvariantViolation, match="gap"):
        vector.changed({2: "c"})
    assert repr(vector) == "Vector(['a'])"
