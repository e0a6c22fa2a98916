import json

import pytest

from kraftlog.errors import NotLeaderError
from quorum.output import Output, table

ERROR = NotLeaderError("epoch 3 is not led here", hint="ask node 2")


def test_people_read_text(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output("status", as_json=False)
    output.warnings.append("voter 2 is gone")
    output.show({"x": 1}, "all is well")
    output.fail(ERROR)
    out, err = capsys.readouterr()
    assert out == "all is well\n"
    assert err == ("warning: voter 2 is gone\nerror: epoch 3 is not led here\nhint:  ask node 2\n")


def test_programs_read_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output("status", as_json=True)
    output.show({"x": [1, None]}, "unused")
    output.fail(ERROR)
    out, err = capsys.readouterr()
    good, bad = map(json.loads, out.splitlines())
    assert good == {
        "command": "status",
        "schema": 1,
        "data": {"x": [1, None]},
        "warnings": [],
        "error": None,
    }
    assert bad["data"] is None
    assert bad["error"] == {
        "code": "NOT_LEADER_OR_FOLLOWER",
        "message": "epoch 3 is not led here",
        "hint": "ask node 2",
        "retriable": True,
    }
    assert err == ""


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    text = table(("A", "LONG"), [("12345", "x"), ("1", "")])
    assert text == "A      LONG\n12345  x\n1"
