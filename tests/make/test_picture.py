"""The picture in the README is one of a real run."""

import importlib.util
import re
import sys
from html import unescape
from types import ModuleType

import pytest

from tests.tidy.source import ROOT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("picture", ROOT / ".make" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(svg: str) -> list[str]:
    return [unescape(each) for each in re.findall(r"<text [^>]*>([^<]*)</text>", svg)]


def test_what_a_terminal_shows_is_recorded_with_its_colours(script: ModuleType) -> None:
    code = r"import sys; print('\x1b[32mgood\x1b[0m'); print('a < b', sys.stdout.isatty())"
    lines = list(script.lines_of(script.record((sys.executable, "-c", code))))
    assert lines == [("32", "good"), ("", "a < b True")]
    svg = script.picture(lines)
    assert texts(svg) == ["good", "a < b True"]
    assert script.STYLES["32"] in svg


def test_a_run_that_fails_makes_no_picture(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="ended with 3"):
        script.record((sys.executable, "-c", "raise SystemExit(3)"))


def test_the_picture_shows_a_whole_run_that_passed() -> None:
    shown = texts((ROOT / "docs" / "demo.svg").read_text())
    assert shown[0] == "$ make demo SPARK=0"
    for begin in ("t+", "VERDICT PASS", "  acknowledged ", "  lost "):
        assert any(line.startswith(begin) for line in shown), begin
    acknowledged, read = (
        next(line.split()[-1] for line in shown if line.startswith(f"  {name} "))
        for name in ("acknowledged", "read back")
    )
    assert re.fullmatch(r"\d+", acknowledged)
    assert int(read) >= int(acknowledged)
