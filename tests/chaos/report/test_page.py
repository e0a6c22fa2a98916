import re
from pathlib import Path

import pytest

from chaos.history import History, Json
from chaos.report.page import ANOMALIES_MAX, REPORT, write_report
from chaos.report.story import LINES_MAX
from tests.chaos.report.runs import (
    HOSTILE,
    Page,
    a_broken_leader,
    controller,
    failed,
    fault,
    results,
    send,
    write_run,
)

PICTURES = [
    "Faults",
    "Controller epochs",
    "Partition leaders and ISR",
    "Client operations by latency",
    "Throughput",
    "Not yet read",
]


def page_of(
    directory: Path, history: History | None, result: dict[str, Json] | None = None
) -> Page:
    path = write_report(write_run(directory, history, result))
    assert path == directory / REPORT
    return Page(path.read_text(encoding="utf-8"))


def test_the_verdict_comes_first_and_in_words(tmp_path: Path) -> None:
    page = page_of(tmp_path, a_broken_leader())
    header = page.all("header")[0]
    assert header.attributes["class"] == "pass"
    assert "Passed" in header.text
    assert "87 acked" in header.text
    assert page.text_of("title").startswith("kill-broker: Passed")
    assert page.all("h1")[0].text == "kill-broker"


def test_a_failure_says_what_was_missed_and_what_was_found(tmp_path: Path) -> None:
    page = page_of(tmp_path, a_broken_leader(), failed())
    assert page.all("header")[0].attributes["class"] == "fail"
    assert page.rows()[0] == ["no ack for", "3 s = 2.00 x session", "at most 2.5 s", "✕ missed"]
    assert page.rows()[1][1] == "not measured"
    assert "Findings: 2" in page.text_of("h2")
    assert "lost orders-0: value 7" in page.text_of("pre")


@pytest.mark.parametrize(
    ("verdict", "words"), [("SKIPPED", "Skipped"), ("ERROR", "The harness failed")]
)
def test_other_verdicts_have_their_words(tmp_path: Path, verdict: str, words: str) -> None:
    page = page_of(tmp_path, None, results(verdict, counts={}, criteria=[]))
    assert words in page.all("header")[0].text
    assert "Nothing was recorded" in page.text_of("p")


def test_every_picture_has_its_twin_in_a_table(tmp_path: Path) -> None:
    page = page_of(tmp_path, a_broken_leader())
    assert [each.text for each in page.all("h3")] == PICTURES
    for title in PICTURES:
        section = page.section(title)
        assert section.picture().get("aria-label")
        assert section.rows(), title
        assert section.all("summary")[0].text == "The same as a table"


def test_a_table_tells_what_the_picture_shows(tmp_path: Path) -> None:
    page = page_of(tmp_path, a_broken_leader())
    faults = page.section("Faults").rows()
    assert ["b1", "kill -9", "", "2.500", "6.000", "3.500"] in faults
    assert page.section("Controller epochs").rows() == [
        ["c1", "epoch 1", "", "0.500", "4.000", "3.500"],
        ["c3", "epoch 2", "", "4.000", "the end", "4.500"],
    ]
    latency = page.section("Client operations by latency")
    assert [row[:3] for row in latency.rows()] == [
        ["send", "fail", "1"],
        ["send", "ok", "87"],
        ["send", "unknown", "2"],
    ]
    assert [row[2] for row in latency.rows(1)] == [
        "REQUEST_TIMED_OUT: no answer",
        "REQUEST_TIMED_OUT: no answer",
        "it never ended",
    ]
    assert page.section("Not yet read").rows()[-1] == ["9", "0"]


def test_the_page_needs_nothing_and_runs_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path, a_broken_leader(), failed())
    tags = {each.tag for each in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    names = {name for each in page.elements for name in each.attributes}
    assert not any(name.startswith("on") or name in ("src", "href") for name in names)
    addresses = set(re.findall(r"https?://[^\"'\s<]+", page.source))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place to fetch from
    policy = page.all("meta")[1].attributes["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_no_text_of_a_run_can_break_the_page(tmp_path: Path) -> None:
    hostile = results(
        "FAIL",
        drill=HOSTILE,
        seed=HOSTILE,
        words=HOSTILE,
        anomalies=[HOSTILE],
        counts={HOSTILE: HOSTILE},
        criteria=[{"words": HOSTILE, "unit": HOSTILE, "per": HOSTILE, "measured": 1, "ratio": 2}],
    )
    events = (controller(0.1, HOSTILE, 1), fault(0.2, HOSTILE, HOSTILE, more=HOSTILE))
    history = History((send(0, 0.3, 0.1),), events, 1.0)
    path = write_report(
        write_run(tmp_path, history, hostile, meta={"title": HOSTILE, "x": HOSTILE})
    )
    page = Page(path.read_text(encoding="utf-8"))
    tags = {each.tag for each in page.elements}
    assert not tags & {"script", "img"}
    assert not any(name.startswith("on") for each in page.elements for name in each.attributes)
    assert HOSTILE.partition("\x00")[0] in page.all("h1")[0].text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page.source)
    assert len(page.pictures()) == len(PICTURES) + 1


def test_a_cut_history_is_said_to_be_cut(tmp_path: Path) -> None:
    directory = write_run(tmp_path, a_broken_leader())
    with (directory / "history.jsonl").open("a") as file:
        file.write('{"t": 9.0, "ki')
    page = Page(write_report(directory).read_text(encoding="utf-8"))
    assert "The history was cut" in page.text_of("p")


def test_a_long_run_stays_a_page(tmp_path: Path) -> None:
    """All is bounded, and what was left out is said."""
    sends = tuple(send(number, number * 0.01, 0.005) for number in range(20_000))
    events = tuple(fault(number * 0.5, "cut", f"c{number}->c2") for number in range(400))
    found = [f"lost orders-0: value {number}" for number in range(ANOMALIES_MAX + 5)]
    page = page_of(tmp_path, History(sends, events, 200.0), results("FAIL", anomalies=found))
    assert len(page.source) < 3_000_000
    assert "5 more are in results.json" in page.source
    assert f"{400 - LINES_MAX} more are in history.jsonl" in page.source
    assert "2,000 of 20,000 operations are drawn" in page.text_of("figcaption")


def test_the_report_is_written_anew_in_one_step(tmp_path: Path) -> None:
    page_of(tmp_path, a_broken_leader())
    page_of(tmp_path, None, results("SKIPPED"))
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".tmp"] == []
    assert "Skipped" in (tmp_path / REPORT).read_text(encoding="utf-8")
