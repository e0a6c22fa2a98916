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


def test_a_live_table_stays_below_all_lines_and_goes_in_the_end() -> None:
    out = Terminal()
    timeline = Timeline(out, {"NO_COLOR": ""})
    timeline.show({"a": "1", "long": "2"})
    timeline.say("killed", "act")
    timeline.show({})
    first, second, last = out.getvalue().split("\x1b[2A\x1b[J")
    assert first == "  a     1\n  long  2\n"
    assert second.endswith("! killed\n" + first)
    assert last == ""


def test_where_nothing_can_be_taken_back_there_is_no_live_table() -> None:
    for out, environment in ((io.StringIO(), {}), (Terminal(), {"TERM": "dumb"})):
        Timeline(out, environment).show({"a": "1"})
        assert out.getvalue() == ""
