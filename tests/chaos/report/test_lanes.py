from xml.etree import ElementTree as ET

from chaos.history import History, Outcome
from chaos.report import lanes
from chaos.report.clients import dots, slices
from chaos.report.spans import Span, fault_spans, partition_spans, phase_spans, reign_spans
from tests.chaos.report.runs import HOSTILE, SVG, a_broken_leader, hovers, send

HISTORY = a_broken_leader()
SCALE = lanes.scale_of(HISTORY)
FAULTS = fault_spans(HISTORY)


def drawn(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - our own


def texts(picture: ET.Element, style: str) -> list[str]:
    found = picture.iter(f"{SVG}text")
    return [each.text or "" for each in found if each.get("class") == style]


def rects(picture: ET.Element, style: str) -> list[ET.Element]:
    found = picture.iter(f"{SVG}rect")
    return [each for each in found if style in each.get("class", "").split()]


def test_phases_are_on_top_and_every_fault_has_its_bar() -> None:
    picture = drawn(lanes.faults_picture(SCALE, phase_spans(HISTORY), FAULTS))
    assert [each for each in texts(picture, "lane") if each] == ["phase", "b1", "c1->c2"]
    assert len(rects(picture, "fault")) == 3
    assert len(rects(picture, "phase")) == 5
    assert len(rects(picture, "band")) == 1  # they overlap


def test_lanes_are_counted_as_people_count() -> None:
    spans = [Span(f"orders-{number}", 0, 1, "b1") for number in (10, 2, 1)]
    picture = drawn(lanes.leaders_picture(SCALE, spans, ()))
    assert texts(picture, "lane") == ["orders-1", "orders-2", "orders-10"]


def test_each_epoch_is_a_bar_of_its_controller() -> None:
    picture = drawn(lanes.reigns_picture(SCALE, reign_spans(HISTORY), FAULTS))
    assert texts(picture, "lane") == ["c1", "c3"]
    assert [each.get("class") for each in rects(picture, "reign")] == ["reign", "reign"]


def test_leaders_differ_in_shade_and_a_short_isr_is_notched() -> None:
    picture = drawn(lanes.leaders_picture(SCALE, partition_spans(HISTORY), FAULTS))
    assert len(rects(picture, "nobody")) == 1
    assert len(rects(picture, "leader0")) == 1
    assert len(rects(picture, "leader1")) == 4
    assert len(rects(picture, "short")) == 2


def test_a_bar_says_its_whole_story_when_one_points_at_it() -> None:
    open_span = Span("b1", 1.0, 2.0, "SIGSTOP", "ms 200", is_open=True)
    assert lanes.hover(open_span) == "b1: SIGSTOP (ms 200), 1.00 s to the end"
    assert lanes.labels(open_span) == ("SIGSTOP, ms 200", "SIGSTOP")
    assert lanes.hover(Span("b1", 1.0, 2.0, "cut")) == "b1: cut, 1.00 s to 2.00 s"


def test_operations_are_marks_by_outcome_and_height() -> None:
    picture = drawn(lanes.operations_picture(SCALE, dots(HISTORY), FAULTS))
    good = [each for each in picture.iter(f"{SVG}circle") if each.get("class") == "ok"]
    bad = [each.get("class") for each in picture.iter(f"{SVG}path")]
    assert len(good) == 87
    assert sorted(each for each in bad if each) == ["fail", "unknown", "unknown"]
    assert texts(picture, "axis")[-4:] == ["1 ms", "10 ms", "100 ms", "1 s"]


def test_an_operation_that_takes_longer_is_drawn_higher() -> None:
    history = History((send(0, 1.0, 0.002), send(1, 1.0, 0.5)), (), 2.0)
    picture = drawn(lanes.operations_picture(lanes.scale_of(history), dots(history), ()))
    quick, slow = [float(each.get("cy", "")) for each in picture.iter(f"{SVG}circle")]
    assert slow < quick


def test_throughput_is_told_second_by_second() -> None:
    found = slices(HISTORY)
    picture = drawn(lanes.throughput_picture(SCALE, found, FAULTS))
    assert "3 s to 4 s: 1 fail" in hovers(picture, "rect", "fail")
    counted = sum(each.counts[Outcome.OK] for each in found)
    assert sum(int(each.split()[-2]) for each in hovers(picture, "rect", "ok")) == counted == 87


def test_what_was_not_yet_read_is_told_second_by_second() -> None:
    picture = drawn(lanes.unseen_picture(SCALE, slices(HISTORY), FAULTS))
    told = hovers(picture, "rect", "unseen")
    assert told[0] == "at 2 s: 20 not yet read"
    assert not any(each.startswith("at 9 s") for each in told)


def test_nothing_recorded_is_an_empty_picture() -> None:
    history = History(())
    scale = lanes.scale_of(history)
    for picture in (
        lanes.faults_picture(scale, (), ()),
        lanes.reigns_picture(scale, (), ()),
        lanes.leaders_picture(scale, (), ()),
        lanes.operations_picture(scale, (), ()),
        lanes.throughput_picture(scale, (), ()),
        lanes.unseen_picture(scale, (), ()),
    ):
        assert drawn(picture).find(f"{SVG}title") is not None


def test_names_cannot_break_out_of_the_picture() -> None:
    span = Span(HOSTILE, 0, 1, HOSTILE, HOSTILE)
    picture = drawn(lanes.faults_picture(SCALE, (), [span]))
    assert not list(picture.iter(f"{SVG}script"))
    assert not list(picture.iter("script"))
