"""Size budgets, and that each of them can be broken."""

import textwrap

import pytest

from tests.tidy import budgets, source
from tests.tidy.ratchet import OVER_BUDGET, complaints


def test_sizes_stay_within_budget() -> None:
    measured: dict[str, int] = {}
    for path, text in source.written_sources().items():
        measured |= budgets.over_budget(path, text)
    assert not complaints(measured, OVER_BUDGET), "\n".join(complaints(measured, OVER_BUDGET))


def test_a_function_is_measured_without_comments_docstrings_and_blank_lines() -> None:
    padding = '    """Two\n    lines."""\n\n    # why\n'
    lines = budgets.FUNCTION_LINES_MAX - 1
    text = "def f():\n" + padding + "    x = 1\n\n    # why\n" * lines
    assert budgets.over_budget("storage/x.py", text) == {}
    assert budgets.over_budget("storage/x.py", text + "    x = 1\n") == {
        "function lines: storage/x.py::f": budgets.FUNCTION_LINES_MAX + 1
    }


def test_a_test_function_may_be_longer() -> None:
    text = "def f():\n" + "    x = 1\n" * budgets.FUNCTION_LINES_MAX
    assert budgets.over_budget("tests/x.py", text) == {}
    longer = text + "    x = 1\n" * 20
    assert "function lines: tests/x.py::f" in budgets.over_budget("tests/x.py", longer)


def test_methods_and_inner_functions_are_measured_by_name() -> None:
    body = "            x = 1\n" * budgets.FUNCTION_LINES_MAX
    text = f"class C:\n    def f(self):\n        def g():\n{body}"
    assert set(budgets.over_budget("storage/x.py", text)) == {
        "function lines: storage/x.py::C.f",
        "function lines: storage/x.py::C.f.g",
    }


def test_a_long_file_and_a_long_line() -> None:
    assert budgets.over_budget("x.c", "\n" * 500 + "y" * 101) == {
        "file lines: x.c": 501,
        "line length: x.c": 101,
    }
    assert budgets.over_budget("x.c", "\n" * 499 + "y" * 100) == {}


FOUR_DEEP = [
    "for a in b:\n if a:\n  while a:\n   with a:\n    x = 1",
    "try:\n x = 1\nexcept A:\n if a:\n  for b in c:\n   if b:\n    x = 1",
    "try:\n x = 1\nfinally:\n if a:\n  for b in c:\n   if b:\n    x = 1",
    "match a:\n case 1:\n  if a:\n   for b in c:\n    if b:\n     x = 1",
    "if a:\n x = 1\nelif b:\n if c:\n  if d:\n   if e:\n    x = 1",
    "if a:\n x = 1\nelse:\n y = 1\n if c:\n  if d:\n   if e:\n    x = 1",
]


@pytest.mark.parametrize("block", FOUR_DEEP)
def test_nesting(block: str) -> None:
    text = "def f():\n" + textwrap.indent(block, " ") + "\n"
    assert budgets.over_budget("storage/x.py", text) == {"nesting: storage/x.py::f": 4}


def test_elif_and_inner_functions_do_not_nest() -> None:
    elifs = "def f():\n if a:\n  x = 1\n" + " elif b:\n  x = 1\n" * 9
    inner = "def f():\n if a:\n  if b:\n   def g():\n    if c:\n     if d:\n      x = 1\n"
    assert budgets.over_budget("storage/x.py", elifs + inner) == {}


def test_positional_parameters() -> None:
    method = "class C:\n def f(self, a, b, c, d, e, *, g, h): ...\n"
    assert budgets.over_budget("storage/x.py", method) == {}
    function = "async def f(a, b, /, c, d, e, g): ...\n"
    assert budgets.over_budget("storage/x.py", function) == {
        "positional parameters: storage/x.py::f": 6
    }
