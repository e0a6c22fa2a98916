import io
import json
import os

from kraftctl.output import Output, table
from kraftlog.errors import NotController


def made(form: str) -> tuple[Output, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Output("topic ls", form=form, out=out, err=err), out, err


def test_a_document_has_an_envelope() -> None:
    output, out, _ = made("json")
    output.warnings.append("careful")
    output.show({"a": 1}, "text")
    assert json.loads(out.getvalue()) == {
        "command": "topic ls",
        "schema": 1,
        "data": {"a": 1},
        "warnings": ["careful"],
        "error": None,
    }


def test_people_get_text_and_warnings_apart() -> None:
    output, out, err = made("table")
    output.warnings.append("careful")
    output.show({"a": 1}, "text")
    assert out.getvalue() == "text\n"
    assert err.getvalue() == "warning: careful\n"


def test_lines_are_documents_of_their_own() -> None:
    output, out, _ = made("jsonl")
    output.show([{"a": 1}, {"a": 2}], "text")
    assert [json.loads(line)["a"] for line in out.getvalue().splitlines()] == [1, 2]


def test_an_error_says_what_to_do() -> None:
    output, out, err = made("table")
    output.fail(NotController("not here", hint="there"))
    assert (out.getvalue(), err.getvalue()) == ("", "error: not here\nhint:  there\n")
    output, out, err = made("json")
    output.fail(NotController("not here", hint="there"))
    error = json.loads(out.getvalue())["error"]
    assert error == {
        "code": "NOT_CONTROLLER",
        "message": "not here",
        "hint": "there",
        "retriable": True,
    }


def test_numbers_stand_to_the_right() -> None:
    text = table(("NAME", "N", "LIST"), [("a", 5, (1, 2)), ("long", 100, ())])
    assert text.splitlines() == ["NAME    N  LIST", "a       5  1,2", "long  100  -"]
    assert table(("A", "B"), []) == "A  B"
    assert table(("A",), [(None,), (True,)]).splitlines() == ["A", "-", "yes"]


def test_who_has_stopped_reading_is_noticed_without_a_write() -> None:
    there, ours = os.pipe()
    with os.fdopen(ours, "w") as out:
        output = Output("logs", out=out)
        before = output.is_unread
        os.close(there)
        assert (before, output.is_unread) == (False, True)
    assert not Output("logs", out=io.StringIO()).is_unread


def test_a_quiet_one_says_what_is_wrong_and_no_more() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = Output("topic ls", quiet=True, out=out, err=err)
    output.note("working on it")
    output.warnings.append("careful")
    output.show({}, "text")
    output.warn("odd")
    output.fail(NotController("no", hint="ask another"))
    told = ["warning: careful", "warning: odd", "error: no", "hint:  ask another"]
    assert (out.getvalue(), err.getvalue().splitlines()) == ("text\n", told)
