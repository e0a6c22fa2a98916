"""The five pictures of a run, each over the same time and with the faults behind it."""

from collections.abc import Callable, Iterable, Sequence

from chaos.history import History, Outcome
from chaos.report import svg
from chaos.report.clients import Dot, Second
from chaos.report.spans import Span

OPS_HEIGHT = 220
COLUMNS_HEIGHT = 130
LEAST_SECONDS = 0.001
LOG_LEVELS = ((0.001, "1 ms"), (0.01, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s"))
LEADER_STYLES = 6
"""Shades that leaders take turns with; each bar is named too."""


def hover(span: Span) -> str:
    end = "the end" if span.is_open else f"{span.end:.2f} s"
    detail = f" ({span.detail})" if span.detail else ""
    return f"{span.lane}: {span.label}{detail}, {span.begin:.2f} s to {end}"


def spans_picture(
    title: str, scale: svg.Scale, spans: Sequence[Span], style: Callable[[Span], str]
) -> str:
    lanes: dict[str, list[svg.Bar]] = {}
    for span in spans:
        bar = svg.Bar(span.begin, span.end, span.label, hover(span), style(span))
        lanes.setdefault(span.lane, []).append(bar)
    parts = [
        part
        for row, (name, bars) in enumerate(sorted(lanes.items()))
        for part in svg.lane(scale, row, name, bars)
    ]
    return svg.picture(title, max(len(lanes), 1) * svg.LANE, scale, parts)


def faults_picture(scale: svg.Scale, spans: Sequence[Span]) -> str:
    return spans_picture("Faults over time", scale, spans, lambda _: "fault")


def reigns_picture(scale: svg.Scale, spans: Sequence[Span]) -> str:
    return spans_picture("Controller epochs over time", scale, spans, lambda _: "reign")


def leaders_picture(scale: svg.Scale, spans: Sequence[Span]) -> str:
    names = sorted({span.label for span in spans if span.label != "no leader"})

    def style(span: Span) -> str:
        if span.label not in names:
            return "nobody"
        return f"leader{names.index(span.label) % LEADER_STYLES}"

    return spans_picture("Partition leaders over time", scale, spans, style)


def _bands(scale: svg.Scale, faults: Iterable[Span], height: float) -> list[str]:
    return [svg.band(scale, span.begin, span.end, height) for span in faults]


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


def throughput_picture(scale: svg.Scale, seconds: Sequence[Second], faults: Sequence[Span]) -> str:
    most = max([1, *(each.counts.total() for each in seconds)])
    heights = svg.Heights(0, most, COLUMNS_HEIGHT)
    parts = _bands(scale, faults, COLUMNS_HEIGHT)
    step = svg.nice_step(most / 4)
    for number in range(int(most / step) + 1):
        parts += svg.level(heights.y(step * number), f"{step * number:g}/s")
    for each in seconds:
        parts += _column(scale, heights, each)
    return svg.picture("Operations per second", COLUMNS_HEIGHT, scale, parts)


def _column(scale: svg.Scale, heights: svg.Heights, second: Second) -> list[str]:
    x, base, parts = scale.x(second.begin), 0, []
    width = max(scale.x(second.begin + 1) - x - 1, 1.0)
    for outcome in Outcome:
        count = second.counts[outcome]
        if not count:
            continue
        low, high = heights.y(base), heights.y(base + count)
        base += count
        parts.append(
            f'<rect class="column {outcome}" x="{x:.1f}" y="{high:.1f}" width="{width:.1f}"'
            f' height="{low - high:.1f}"><title>second {second.begin}: {count} {outcome}</title>'
            "</rect>"
        )
    return parts


def scale_of(history: History) -> svg.Scale:
    return svg.Scale(max(history.end, 1.0))
