"""Handles follow their files."""

from dataclasses import dataclass

from storage.handle_table import HandleTable


@dataclass(eq=False)
class Handle:
    path: str


def table_of(*paths: str) -> tuple[HandleTable[Handle], list[Handle]]:
    table: HandleTable[Handle] = HandleTable()
    handles = [Handle(path) for path in paths]
    for handle in handles:
        table.add(handle)
    return table, handles


def test_take_gives_all_handles_of_a_path_once() -> None:
    table, (one, two, other) = table_of("a", "a", "b")
    assert table.take("a") == [one, two]
    assert table.take("a") == []
    assert table.take_all() == [other]
    assert table.take_all() == []


def test_a_discarded_handle_is_forgotten_and_others_stay() -> None:
    table, (one, two) = table_of("a", "a")
    table.discard(one)
    table.discard(one)
    assert table.take("a") == [two]


def test_a_renamed_file_takes_its_handles_along() -> None:
    table, (one, other) = table_of("d/a", "d/ab")
    table.move("d/a", "d/b")
    assert (one.path, other.path) == ("d/b", "d/ab")
    assert table.take("d/b") == [one]


def test_a_renamed_directory_takes_all_below_along_and_no_neighbour() -> None:
    table, handles = table_of("d/a", "d/e/a", "d", "dd/a")
    table.move_dir("d", "x")
    assert [handle.path for handle in handles] == ["x/a", "x/e/a", "d", "dd/a"]
    assert table.take("x/e/a") == [handles[1]]
