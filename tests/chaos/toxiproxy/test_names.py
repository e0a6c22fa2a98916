import pytest

from chaos.toxiproxy.names import name_problem


@pytest.mark.parametrize("name", ["c1__b2", "latency_downstream", "a.b-c", "A9"])
def test_names_that_can_be_asked_for_again(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "a b", "a%2fb", "ä", "a\n", "a?b"])
def test_names_that_cannot(name: str) -> None:
    assert repr(name) in str(name_problem(name))
