"""The six pictures of a run, each over the same time and with the faults behind it."""

import re
from collections.abc import Callable, Iterable, Sequence

from chaos.history import History, Outcome
from chaos.report import svg
from chaos.report.clients import Dot, Slice
from chaos.report.spans import PHASE, Span, covered

OPS_HEIGHT = 220
COLUMNS_HEIGHT = 130
LEAST_SECONDS = 0.001
LOG_LEVELS = (
    (0.001, "1 ms"),
    (0.01, "10 ms"),
    (0.1, "100 ms"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (100.0, "100 s"),
    (1000.0, "1000 s"),
)
LEADER_STYLES = 6
"""Shades that leaders take turns with; each bar is named too."""


def scale_of(history: History) -> svg.Scale:
    return svg.Scale(max(history.end, 1.0))


# -- bars


def spans_picture(
    title: str,
    scale: svg.Scale,
    spans: Sequence[Span],
    style: Callable[[Span], str],
    faults: Iterable[Span] = (),
) -> str:
    lanes: dict[str, list[svg.Bar]] = {}
    for span in spans:
        bar = svg.Bar(span.begin, span.end, labels(span), hover(span), style(span))
        lanes.setdefault(span.lane, []).append(bar)
    rows = [
        (name if number == 0 else "", bars)
        for name in sorted(lanes, key=_lane_order)
        for number, bars in enumerate(svg.rows_of(lanes[name]))
    ]
    height = max(len(rows), 1) * svg.LANE
    parts = _bands(scale, faults, height)
    for row, (name, bars) in enumerate(rows):
        parts += svg.lane(scale, row, name, bars)
    return svg.picture(title, height, scale, parts)


def _lane_order(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Phases on top; orders-2 before orders-10."""
    parts = re.findall(r"[0-9]{1,9}|[^0-9]+", name)
    return name != PHASE, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def labels(span: Span) -> tuple[str, ...]:
    return (f"{span.label}, {span.detail}", span.label) if span.detail else (span.label,)


def hover(span: Span) -> str:
    end = "the end" if span.is_open else f"{span.end:.2f} s"
    detail = f" ({span.detail})" if span.detail else ""
    return f"{span.lane}: {span.label}{detail}, {span.begin:.2f} s to {end}"


def faults_picture(scale: svg.Scale, phases: Sequence[Span], faults: Sequence[Span]) -> str:
    def style(span: Span) -> str:
        return "phase" if span.lane == PHASE else "fault"

    return spans_picture("Faults over time", scale, [*phases, *faults], style, faults)


def reigns_picture(scale: svg.Scale, spans: Sequence[Span], faults: Sequence[Span]) -> str:
    title = "Controller epochs over time"
    return spans_picture(title, scale, spans, lambda _: "reign", faults)


def leaders_picture(scale: svg.Scale, spans: Sequence[Span], faults: Sequence[Span]) -> str:
    names = sorted({span.label for span in spans if span.label != "no leader"})

    def style(span: Span) -> str:
        if span.label not in names:
            return "nobody"
        short = " short" if span.is_short else ""
        return f"leader{names.index(span.label) % LEADER_STYLES}{short}"

    return spans_picture("Partition leaders and ISR over time", scale, spans, style, faults)


def _bands(scale: svg.Scale, faults: Iterable[Span], height: float) -> list[str]:
    return [svg.band(scale, begin, end, height) for begin, end in covered(faults)]


# -- dots and columns


def operations_picture(scale: svg.Scale, found: Sequence[Dot], faults: Sequence[Span]) -> str:
    most = max([1.0, *(dot.seconds for dot in found)])
    heights = svg.Heights(LEAST_SECONDS, most, OPS_HEIGHT, is_log=True)
    parts = _bands(scale, faults, OPS_HEIGHT)
    for seconds, label in LOG_LEVELS:
        if seconds <= most:
            parts += svg.level(heights.y(seconds), label)
    # What ended badly is drawn last, above the rest.
    for dot in sorted(found, key=lambda each: each.outcome is not Outcome.OK):
        at = (scale.x(dot.t), heights.y(dot.seconds))
        parts.append(svg.mark(*at, str(dot.outcome), f"{dot.seconds * 1000:.1f} ms: {dot.words}"))
    return svg.picture("Client operations by latency", OPS_HEIGHT, scale, parts)


def throughput_picture(scale: svg.Scale, found: Sequence[Slice], faults: Sequence[Span]) -> str:
    def pieces(each: Slice) -> list[svg.Piece]:
        return [
            svg.Piece(
                each.counts[outcome] / (each.end - each.begin),
                str(outcome),
                f"{when(each)}: {each.counts[outcome]} {outcome}",
            )
            for outcome in Outcome
            if each.counts[outcome]
        ]

    most = max([1.0, *(each.per_second for each in found)])
    columns = [(each, pieces(each)) for each in found]
    return _columns_picture("Operations per second", scale, (most, "/s"), columns, faults)


def unseen_picture(scale: svg.Scale, found: Sequence[Slice], faults: Sequence[Span]) -> str:
    def pieces(each: Slice) -> list[svg.Piece]:
        words = f"at {each.end:g} s: {each.unseen} not yet read"
        return [svg.Piece(each.unseen, "unseen", words)] if each.unseen else []

    most = max([1.0, *(float(each.unseen) for each in found)])
    columns = [(each, pieces(each)) for each in found]
    title = "Records acknowledged and not yet read"
    return _columns_picture(title, scale, (most, ""), columns, faults)


def when(each: Slice) -> str:
    return f"{each.begin:g} s to {each.end:g} s"


def _columns_picture(
    title: str,
    scale: svg.Scale,
    axis: tuple[float, str],
    columns: Iterable[tuple[Slice, list[svg.Piece]]],
    faults: Sequence[Span],
) -> str:
    most, unit = axis
    heights = svg.Heights(0, most, COLUMNS_HEIGHT)
    parts = _bands(scale, faults, COLUMNS_HEIGHT)
    step = max(svg.nice_step(most / 4), 1.0)
    for number in range(int(most / step) + 1):
        parts += svg.level(heights.y(step * number), f"{step * number:g}{unit}")
    for each, pieces in columns:
        parts += svg.column(scale, heights, (each.begin, each.end), *pieces)
    return svg.picture(title, COLUMNS_HEIGHT, scale, parts)
