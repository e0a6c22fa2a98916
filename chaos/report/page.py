"""The page: verdict in words, targets, findings, five pictures, and the numbers behind each.

One file, no script, nothing from elsewhere: it can be mailed, kept, and opened in ten years.
"""

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from chaos.history import Outcome
from chaos.report import lanes
from chaos.report.clients import dots, latencies, throughput
from chaos.report.run import Criterion, Run, read_run
from chaos.report.spans import Span, fault_spans, partition_spans, reign_spans
from chaos.report.style import CSS

REPORT = "report.html"
VERDICT_WORDS = {
    "PASS": "Passed",
    "FAIL": "Failed",
    "SKIPPED": "Skipped",
    "ERROR": "The harness failed",
}
ANOMALIES_MAX = 100
_LEGEND = (
    '<p class="legend"><span class="key ok">●</span> ok <span class="key fail">✕</span> failed'
    ' <span class="key unknown">◆</span> unknown <span class="key band">▮</span> a fault</p>'
)


def write_report(run_dir: Path) -> Path:
    """Write report.html beside what it is about, and return where."""
    page = render(read_run(run_dir))
    path = run_dir / REPORT
    temporary = path.with_suffix(".tmp")
    temporary.write_text(page, encoding="utf-8", errors="backslashreplace")
    os.replace(temporary, path)
    return path


def render(run: Run) -> str:
    title = escape(f"{run.drill}: {VERDICT_WORDS[run.verdict]}")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{CSS}</style></head><body><main>",
            *_verdict(run),
            *_pictures(run),
            *_about(run),
            "</main></body></html>\n",
        ]
    )


# -- words


def _verdict(run: Run) -> list[str]:
    torn = "<p>The history was cut: the harness was killed.</p>" if run.history.is_torn else ""
    word = VERDICT_WORDS[run.verdict]
    return [
        f'<header class="{run.verdict.lower()}"><p class="verdict">{word}</p>',
        f"<h1>{escape(run.drill)}</h1><p>{escape(run.words)}</p>{torn}</header>",
        '<dl class="counts">',
        *(
            f"<div><dt>{escape(name)}</dt><dd>{escape(count)}</dd></div>"
            for name, count in run.counts.items()
        ),
        "</dl>",
        *_criteria(run.criteria),
        *_anomalies(run.anomalies),
    ]


def _criteria(criteria: Sequence[Criterion]) -> list[str]:
    if not criteria:
        return []
    rows = [
        (
            each.name,
            _figure(each.measured, each.unit),
            _figure(each.target, each.unit),
            "✓ met" if each.ok else "✕ missed",
        )
        for each in criteria
    ]
    return ["<h2>Targets</h2>", table(("criterion", "measured", "target", ""), rows)]


def _figure(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.4g} {unit}".strip()


def _anomalies(anomalies: Sequence[str]) -> list[str]:
    if not anomalies:
        return ["<h2>Findings</h2><p>None: nothing that clients or files show breaks a rule.</p>"]
    shown = [f"<li><pre>{escape(each)}</pre></li>" for each in anomalies[:ANOMALIES_MAX]]
    more = len(anomalies) - len(shown)
    rest = f"<p>{more} more are in results.json.</p>" if more else ""
    return [f"<h2>Findings: {len(anomalies)}</h2><ol>", *shown, f"</ol>{rest}"]


# -- pictures


def _pictures(run: Run) -> list[str]:
    history, scale = run.history, lanes.scale_of(run.history)
    faults, reigns = fault_spans(history), reign_spans(history)
    partitions = partition_spans(history)
    return [
        *_section(
            "Faults", lanes.faults_picture(scale, faults), _span_table(faults, "target", "fault")
        ),
        *_section(
            "Controller epochs",
            lanes.reigns_picture(scale, reigns),
            _span_table(reigns, "controller", "epoch"),
        ),
        *_section(
            "Partition leaders and ISR",
            lanes.leaders_picture(scale, partitions),
            _span_table(partitions, "partition", "leader"),
        ),
        *_section(
            "Client operations by latency",
            _LEGEND + lanes.operations_picture(scale, dots(history), faults),
            _latency_table(run),
        ),
        *_section(
            "Throughput",
            lanes.throughput_picture(scale, throughput(history), faults),
            _throughput_table(run),
        ),
    ]


def _section(title: str, picture: str, twin: str) -> list[str]:
    return [
        f"<section><h2>{title}</h2><figure>{picture}</figure>",
        f"<details><summary>The same as a table</summary>{twin}</details></section>",
    ]


def _span_table(spans: Sequence[Span], lane: str, label: str) -> str:
    rows = [
        (
            span.lane,
            span.label,
            span.detail,
            f"{span.begin:.3f}",
            "the end" if span.is_open else f"{span.end:.3f}",
            f"{span.seconds:.3f}",
        )
        for span in spans
    ]
    return table((lane, label, "details", "from (s)", "to (s)", "lasted (s)"), rows)


def _latency_table(run: Run) -> str:
    rows = [
        (each.op, str(each.outcome), str(each.count), *map(_ms, (each.p50, each.p99, each.most)))
        for each in latencies(run.history)
    ]
    return table(("operation", "outcome", "count", "p50 (ms)", "p99 (ms)", "max (ms)"), rows)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}"


def _throughput_table(run: Run) -> str:
    rows = [
        (str(each.begin), *(str(each.counts[outcome]) for outcome in Outcome))
        for each in throughput(run.history)
    ]
    return table(("second", *map(str, Outcome)), rows)


def _about(run: Run) -> list[str]:
    facts = [("seed", run.seed), *run.meta.items()]
    return ["<section><h2>About this run</h2>", table(("fact", ""), facts), "</section>"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = [_row("td", row) for row in rows]
    if not body:
        return "<p>None.</p>"
    return f"<table><thead>{_row('th', head)}</thead><tbody>{''.join(body)}</tbody></table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    inner = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
