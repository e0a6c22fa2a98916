import io
import re

from kraftctl.timeline import Timeline


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_has_a_time_and_a_mark() -> None:
    out = io.StringIO()
    timeline = Timeline(out, {})
    timeline.say("killed", "act")
    timeline.say("back", "good")
    first, second = out.getvalue().splitlines()
    assert re.fullmatch(r"t\+\d{3}\.\d  ! killed", first)
    assert second.endswith("✓ back")


def test_colour_is_for_terminals_that_want_it() -> None:
    for out, environment, coloured in (
        (io.StringIO(), {}, False),
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, False),
    ):
        Timeline(out, environment).say("x", "bad")
        assert ("\x1b[" in out.getvalue()) == coloured


def test_a_table_is_aligned() -> None:
    out = io.StringIO()
    Timeline(out, {}).table({"a": "1", "long name": "2"})
    assert out.getvalue().splitlines() == ["  a          1", "  long name  2"]
