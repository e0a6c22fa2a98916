import re
from pathlib import Path

import pytest

from chaos.drills.catalog import all_drills, find_drill
from kraftlog.errors import ConfigError

DOCUMENT = Path(__file__).parents[3] / "docs" / "DRILLS.md"


def test_drills_have_names_of_their_own_and_stand_in_order() -> None:
    drills = all_drills()
    names = [each.name for each in drills]
    assert len(set(names)) == len(names)
    assert [each.number for each in drills] == sorted(each.number for each in drills)
    assert all(each.title and not each.title.endswith(".") for each in drills)


def test_make_chaos_runs_about_twelve() -> None:
    assert 10 <= sum(each.in_chaos for each in all_drills()) <= 14


def test_the_document_has_a_row_for_each_and_marks_those_of_make_chaos() -> None:
    row = re.compile(r"^\| (\d+)( ●)? \| `([a-z-]+)` \|", re.MULTILINE)
    rows = {(int(each[1]), each[3], bool(each[2])) for each in row.finditer(DOCUMENT.read_text())}
    assert rows == {(each.number, each.name, each.in_chaos) for each in all_drills()}


def test_a_drill_is_found_by_name() -> None:
    assert find_drill("kill-controller-leader").number == 2


def test_a_name_that_is_nearly_right_is_guessed() -> None:
    with pytest.raises(ConfigError, match="did you mean kill-controller-leader"):
        find_drill("kill-controler-leader")
    with pytest.raises(ConfigError, match="drill ls"):
        find_drill("zzz")
