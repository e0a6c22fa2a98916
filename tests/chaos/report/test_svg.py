import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.report import svg
from tests.chaos.report.runs import HOSTILE, SVG, Page

SCALE = svg.Scale(10.0)


def bar(begin: float, end: float, *labels: str, hover: str = "hover") -> svg.Bar:
    return svg.Bar(begin, end, labels, hover, "fault")


def drawn(parts: list[str]) -> ET.Element:
    picture = svg.picture("A title", 100, SCALE, parts)
    return ET.fromstring(picture)  # noqa: S314 - our own


def texts(picture: ET.Element, style: str) -> list[str]:
    found = picture.iter(f"{SVG}text")
    return [each.text or "" for each in found if each.get("class") == style]


@given(st.text())
def test_any_text_is_one_piece_of_xml_and_of_html(words: str) -> None:
    escaped = svg.escaped(words)
    found = ET.fromstring(f'<a b="{escaped}">{escaped}</a>')  # noqa: S314 - our own
    assert (list(found.attrib), list(found)) == (["b"], [])
    assert (found.text or "").replace("\n", " ") == found.get("b")
    page = Page(f"<p title='{escaped}'>{escaped}</p>")
    assert [each.tag for each in page.elements] == ["p"]
    assert escaped.encode("utf-8").decode("utf-8") == escaped


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_what_can_be_seen_is_kept_as_it_is(words: str) -> None:
    assert (ET.fromstring(f"<a>{svg.escaped(words)}</a>").text or "") == words  # noqa: S314


def test_what_cannot_be_seen_is_written_as_its_number() -> None:
    assert svg.escaped("a\x00b\x1b\u202ec\ud800\n") == "a\\x00b\\x1b\\u202ec\\ud800\n"


def test_text_that_is_too_long_is_cut_where_one_can_see_it() -> None:
    assert svg.shortened("orders-0", 8) == "orders-0"
    assert svg.shortened("orders-10", 8) == "orders-…"


@pytest.mark.parametrize(
    ("least", "step"), [(0, 1), (0.3, 0.5), (1, 1), (1.01, 2), (4, 5), (7, 10), (1.1e6, 2e6)]
)
def test_a_step_is_one_that_people_count_in(least: float, step: float) -> None:
    assert svg.nice_step(least) == pytest.approx(step)


@given(st.floats(1.0, 1e300))
def test_there_are_a_few_ticks_whatever_the_time(seconds: float) -> None:
    ticks = svg.Scale(seconds).ticks()
    assert 2 <= len(ticks) <= 11
    assert ticks[0] == 0
    assert all(tick <= seconds * 1.001 for tick in ticks)


@given(st.floats(0.001, 1e6), st.floats(allow_nan=False, allow_infinity=False))
def test_nothing_is_drawn_outside_the_time(seconds: float, t: float) -> None:
    assert svg.LEFT <= svg.Scale(seconds).x(t) <= svg.WIDTH - svg.RIGHT


def test_a_picture_says_what_it_is_to_those_who_do_not_see_it() -> None:
    picture = drawn([])
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == "A title"
    assert picture.findtext(f"{SVG}title") == "A title"
    assert texts(picture, "axis")[:3] == ["0 s", "1 s", "2 s"]


def test_a_label_stands_on_its_bar_or_beside_it_or_nowhere() -> None:
    long = bar(0, 4, "b1, epoch 3, ISR b1 b2", "b1")
    narrow = bar(4, 4.5, "a name longer than this", "b2 leads")
    crowded = [bar(6, 6.1, "kill -9"), bar(6.2, 6.3, "isolate")]
    picture = drawn(svg.lane(SCALE, 0, "lane", [long, narrow, *crowded]))
    assert texts(picture, "onbar") == ["b1, epoch 3, ISR b1 b2"]
    assert texts(picture, "beside") == ["b2 leads", "isolate"]
    assert sum(1 for _ in picture.iter(f"{SVG}rect")) == 4


def test_labels_of_a_lane_do_not_overlap() -> None:
    bars = [bar(t / 10, t / 10 + 0.03, f"fault {t}") for t in range(0, 100, 3)]
    picture = drawn(svg.lane(SCALE, 0, "lane", bars))
    labels = [each for each in picture.iter(f"{SVG}text") if each.get("class") == "beside"]
    ends = [float(each.get("x", "")) + len(each.text or "") * svg.CHAR for each in labels]
    starts = [float(each.get("x", "")) for each in labels]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_bars_that_overlap_get_rows_of_their_own() -> None:
    first, second, third = bar(0, 5, "a"), bar(1, 2, "b"), bar(5, 6, "c")
    assert svg.rows_of([third, second, first]) == [[first, third], [second]]
    assert svg.rows_of([]) == []


def test_shape_tells_the_outcome_without_colour() -> None:
    picture = drawn([svg.mark(10, 10, style, style) for style in ("ok", "fail", "unknown")])
    circle = picture.find(f"{SVG}circle")
    cross, diamond = picture.findall(f"{SVG}path")
    assert circle is not None
    assert (circle.get("class"), cross.get("class")) == ("ok", "fail")
    assert cross.get("d") != diamond.get("d")
    assert diamond.findtext(f"{SVG}title") == "unknown"


def test_hostile_words_are_text_wherever_they_stand() -> None:
    lane = svg.lane(SCALE, 0, HOSTILE, [bar(0, 10, HOSTILE, hover=HOSTILE)])
    column = svg.column(SCALE, svg.Heights(0, 1, 9), (0, 1), svg.Piece(1, "ok", HOSTILE))
    parts = [*lane, svg.mark(1, 1, "ok", HOSTILE), *column, *svg.level(1, HOSTILE)]
    picture = svg.picture(HOSTILE, 100, SCALE, parts)
    root = ET.fromstring(picture)  # noqa: S314 - our own
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags == {"svg", "title", "line", "text", "g", "rect", "circle"}
    assert all(not name.startswith("on") for each in root.iter() for name in each.attrib)
    assert root.get("aria-label") == HOSTILE.translate(
        {0: "\\x00", 0x1B: "\\x1b", 0x202E: "\\u202e"}
    )


def test_a_hover_is_bounded() -> None:
    assert len(svg.mark(1, 1, "ok", "<" * 10_000)) < svg.HOVER_MAX * len("&lt;") + 200


def test_heights_rise_with_values_and_stay_inside() -> None:
    straight = svg.Heights(0, 10, 100)
    assert (straight.y(0), straight.y(10), straight.y(99)) == (100, 8, 8)
    log = svg.Heights(0.001, 1.0, 100, is_log=True)
    assert log.y(0) == 100
    assert log.y(0.001) > log.y(0.01) > log.y(0.1) > log.y(1.0)
    assert log.y(0.001) - log.y(0.01) == pytest.approx(log.y(0.1) - log.y(1.0))


def test_pieces_of_a_column_lie_on_top_of_each_other() -> None:
    pieces = [svg.Piece(4, "ok", "4 ok"), svg.Piece(6, "fail", "6 fail")]
    picture = drawn(svg.column(SCALE, svg.Heights(0, 10, 108), (0, 1), *pieces))
    low, high = picture.iter(f"{SVG}rect")
    assert float(low.get("height", "")) == pytest.approx(40)
    assert float(high.get("y", "")) + float(high.get("height", "")) == pytest.approx(
        float(low.get("y", ""))
    )


def test_a_short_fault_can_still_be_seen() -> None:
    (width,) = re.findall(r'width="([0-9.]+)"', svg.band(SCALE, 5, 5, 100))
    assert float(width) >= 1
