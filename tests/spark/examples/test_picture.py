from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from spark_connector.examples import picture

SVG = "{http://www.w3.org/2000/svg}"
ROWS = st.lists(st.tuples(st.text("ab<&>\"' ", max_size=5), st.floats(0, 1e9)), max_size=40)
POINTS = st.lists(st.tuples(st.floats(0, 1e12), st.floats(0, 1e9)), max_size=40)


def count(text: str, name: str) -> int:
    return len(ET.fromstring(text).findall(f"{SVG}{name}"))  # noqa: S314 - our own


@given(ROWS)
def test_each_row_has_a_column(rows: list[tuple[str, float]]) -> None:
    assert count(picture.columns("a <title>", "& more", rows), "rect") == len(rows) + 1


@given(ROWS)
def test_each_row_has_a_bar(rows: list[tuple[str, float]]) -> None:
    assert count(picture.bars("a <title>", "& more", rows), "rect") == len(rows) + 1


@given(POINTS)
def test_each_point_has_a_dot_inside_of_the_picture(points: list[tuple[float, float]]) -> None:
    text = picture.dots("title", "subtitle", points)
    assert count(text, "circle") == len(points)
    for circle in ET.fromstring(text).findall(f"{SVG}circle"):  # noqa: S314 - our own
        assert picture.LEFT <= float(circle.attrib["cx"]) <= picture.WIDTH - picture.RIGHT
        assert picture.TOP <= float(circle.attrib["cy"]) <= picture.HEIGHT - picture.BOTTOM


def test_a_small_picture_reads_well() -> None:
    text = picture.bars("Revenue", "3 orders", [("books", 1_250.7), ("toys", 0.5)])
    assert ">Revenue<" in text
    assert ">1,251<" in text
    assert ">0.5<" in text


def test_the_scale_ends_at_a_number_that_divides_well() -> None:
    assert [picture._round_up(value) for value in (0, 1, 3, 81, 100, 4_001)] == [
        1,
        1,
        4,
        100,
        100,
        8_000,
    ]
