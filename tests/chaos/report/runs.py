"""Runs of drills made by hand, and their pages read as a browser would."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

from chaos.history import Event, History, Json, Operation, Outcome

HOSTILE = "\"><script>alert('x')</script>&amp;<img src=x onerror=alert(1)>\x00\x1b[31m\u202e'"
ORDERS: dict[str, Json] = {"topic": "orders", "partition": 0}
VOID = frozenset({"meta", "link", "img", "br", "hr", "input", "base", "source", "embed"})
SVG = "{http://www.w3.org/2000/svg}"


def send(number: int, t: float, seconds: float | None, outcome: Outcome = Outcome.OK) -> Operation:
    """One record, of which `number` is the id, the value and the offset."""
    error = "" if outcome is Outcome.OK or seconds is None else "REQUEST_TIMED_OUT: no answer"
    return Operation(
        id=number,
        process="producer-0",
        op="send",
        value={**ORDERS, "value": number},
        invoked=t,
        outcome=outcome,
        ended=None if seconds is None else t + seconds,
        result={"offset": number} if outcome is Outcome.OK else None,
        error=error,
    )


def poll(number: int, t: float, *values: int) -> Operation:
    records: Json = [[each, each] for each in values]
    result: dict[str, Json] = {**ORDERS, "records": records}
    return Operation(number, "consumer", "poll", ORDERS, t, Outcome.OK, t, result)


def state(t: float, leader: str | None, epoch: int, *isr: str, partition: int = 0) -> Event:
    facts: dict[str, Json] = {"topic": "orders", "partition": partition, "leader": leader}
    return Event(t, "leader", {**facts, "epoch": epoch, "isr": list(isr)})


def fault(t: float, name: str, target: str, **facts: Json) -> Event:
    return Event(t, "fault", {"fault": name, "target": target, **facts})


def heal(t: float, name: str, target: str) -> Event:
    return Event(t, "heal", {"fault": name, "target": target})


def phase(t: float, name: str) -> Event:
    return Event(t, "phase", {"phase": name})


def controller(t: float, leader: str, epoch: int) -> Event:
    return Event(t, "controller", {"leader": leader, "epoch": epoch})


def a_broken_leader() -> History:
    """A broker is killed while the edges of a controller are slow, and comes back."""
    events = (
        phase(0.0, "start"),
        controller(0.5, "c1", 1),
        Event(0.6, "brokers", {"up": ["b1", "b2", "b3"]}),
        state(0.6, "b1", 0, "b1", "b2", "b3"),
        state(0.6, "b2", 0, "b2", "b3", "b1", partition=1),
        phase(1.0, "warm"),
        phase(2.0, "faults"),
        fault(2.0, "slow", "c1->c2", ms=200),
        fault(2.5, "kill -9", "b1"),
        fault(2.6, "cut", "c1->c2"),
        Event(3.4, "brokers", {"up": ["b2", "b3"]}),
        state(3.4, None, 1, "b2", "b3"),
        state(3.5, "b2", 2, "b2", "b3"),
        state(3.5, "b2", 0, "b2", "b3", partition=1),
        controller(4.0, "c3", 2),
        heal(5.0, "edges", "all"),
        heal(6.0, "down", "b1"),
        phase(6.0, "heal"),
        state(7.0, "b2", 2, "b2", "b3", "b1"),
        phase(8.0, "final"),
    )
    calm = [send(number, 1.0 + number * 0.05, 0.004 + number % 5 * 0.003) for number in range(30)]
    hit = [
        send(30, 2.6, 1.2, Outcome.UNKNOWN),
        send(31, 2.8, 0.7, Outcome.FAIL),
        send(32, 3.0, 0.8),
        send(33, 3.1, None, Outcome.UNKNOWN),
    ]
    after = [send(number, 2.4 + number * 0.05, 0.006) for number in range(34, 90)]
    reads = [poll(200, 2.55, *range(30)), poll(201, 8.2, 32, *range(34, 90))]
    operations = sorted([*calm, *hit, *after, *reads], key=lambda each: each.invoked)
    return History(tuple(operations), events, 8.5)


def criterion(measured: float | None, *, ok: bool) -> dict[str, Json]:
    return {
        "name": "u_write",
        "measured": measured,
        "target": 2.5,
        "unit": "s",
        "ok": ok,
        "words": "no ack for",
        "per": "session",
        "ratio": None if measured is None else round(measured / 1.5, 2),
    }


def results(verdict: str = "PASS", **more: Json) -> dict[str, Json]:
    return {
        "drill": "kill-broker",
        "seed": 7,
        "verdict": verdict,
        "criteria": [criterion(1.5, ok=True)],
        "anomalies": [],
        "counts": {"acked": 87, "read": 87, "lost": 0},
        "words": "Passed: 87 acked, 87 read, 0 lost; its target was met.",
        **more,
    }


def failed() -> dict[str, Json]:
    return results(
        "FAIL",
        criteria=[criterion(3.0, ok=False), criterion(None, ok=False), criterion(1.5, ok=True)],
        anomalies=["lost orders-0: value 7", "the drill broke off: no leader within 60 s"],
        words="Failed: lost orders-0: value 7; no ack for: 3 s, target 2.5 s.",
    )


def write_run(
    directory: Path,
    history: History | None,
    result: Mapping[str, Json] | None = None,
    meta: Mapping[str, Json] | None = None,
) -> Path:
    """The files of a run; no history at all where it is None."""
    directory.mkdir(parents=True, exist_ok=True)
    described = {"title": "kill -9 the leader of a partition", "seed": 7} if meta is None else meta
    (directory / "results.json").write_text(json.dumps(result or results()))
    (directory / "meta.json").write_text(json.dumps(described))
    if history is not None:
        (directory / "history.jsonl").write_text("".join(_lines(history)))
    return directory


def _lines(history: History) -> list[str]:
    found: list[tuple[float, int, dict[str, Json]]] = [
        (event.t, 0, {"kind": "event", "what": event.what, **event.facts})
        for event in history.events
    ]
    for each in history.operations:
        asked = {"process": each.process, "op": each.op, "value": each.value}
        found.append((each.invoked, 1, {"kind": "invoke", "id": each.id, **asked}))
        if each.ended is not None:
            answer = {"value": each.result} if each.outcome is Outcome.OK else {"error": each.error}
            found.append((each.ended, 2, {"kind": str(each.outcome), "id": each.id, **answer}))
    found.append((history.end, 3, {"kind": "event", "what": "note"}))
    found.sort(key=lambda each: each[:2])
    return [json.dumps({"t": round(t, 6), **fields}) + "\n" for t, _, fields in found]


# -- pages


@dataclass(frozen=True, slots=True)
class Element:
    tag: str
    attributes: Mapping[str, str]
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.words)


class Page(HTMLParser):
    """All elements in their order, each with the text inside it. Asserts that tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {[each.tag for each in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        last = self._open.pop()
        assert last.tag == tag, f"</{tag}> closes <{last.tag}>"

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.words.append(data)

    def all(self, tag: str, style: str | None = None) -> list[Element]:
        found = [each for each in self.elements if each.tag == tag]
        if style is None:
            return found
        return [each for each in found if style in each.attributes.get("class", "").split()]

    def text_of(self, tag: str) -> str:
        return "\n".join(each.text for each in self.all(tag))

    def section(self, title: str) -> "Page":
        """The part of the page below a heading of a picture."""
        begin = self.source.index(f"<section><h3>{title}</h3>")
        return Page(self.source[begin : self.source.index("</section>", begin) + 10])

    def picture(self) -> ET.Element:
        """The one SVG of a section, by a parser that forgives nothing."""
        found = self.pictures()
        assert len(found) == 1
        return found[0]

    def pictures(self) -> list[ET.Element]:
        parts = self.source.split("<svg")[1:]
        texts = [f"<svg{part[: part.index('</svg>')]}</svg>" for part in parts]
        return [ET.fromstring(text) for text in texts]  # noqa: S314 - our own

    def rows(self, number: int = 0) -> list[list[str]]:
        """The cells of a table, without its head."""
        tables = self.source.split("<table>")[1:]
        body = tables[number][tables[number].index("<tbody>") : tables[number].index("</table>")]
        parts = body.replace("</tbody>", "").split("<tr>")[1:]
        return [[each.text for each in Page(f"<tr>{part}").all("td")] for part in parts]


def hovers(picture: ET.Element, tag: str, style: str) -> list[str]:
    """The titles of the marks of one style."""
    return [
        each.findtext(f"{SVG}title") or ""
        for each in picture.iter(f"{SVG}{tag}")
        if style in each.get("class", "").split()
    ]
