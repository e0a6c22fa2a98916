"""The page: verdict in words, targets, findings, the story, six pictures, and the numbers behind
each.

One file, no script, nothing from elsewhere: it can be mailed, kept, and opened in ten years.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from chaos.history import Outcome
from chaos.report import lanes
from chaos.report.clients import Slice, dots, failures, latencies, measured, slices
from chaos.report.run import Criterion, Run, read_run
from chaos.report.spans import (
    Span,
    fault_spans,
    longest,
    partition_spans,
    phase_spans,
    reign_spans,
)
from chaos.report.story import LINES_MAX, story
from chaos.report.style import CSS
from chaos.report.svg import PATTERNS, escaped, shortened

REPORT = "report.html"
VERDICT_WORDS = {
    "PASS": "Passed",
    "FAIL": "Failed",
    "SKIPPED": "Skipped",
    "ERROR": "The harness failed",
}
COUNT_WORDS = {
    "acked": "acknowledged",
    "read": "read back",
    "unknown": "fate unknown",
}
ANOMALIES_MAX = 100
FAILURES_MAX = 50
WORDS_MAX = 4_000
CELL_MAX = 400
NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'"
"""The browser is told what the page promises: it runs no script and fetches nothing."""
_MARKS = (
    '<span class="key ok">●</span> ok <span class="key fail">✕</span> failed: surely not done'
    ' <span class="key unknown">◆</span> unknown: may have been done'
)
_FILLS = (
    '<span class="swatch ok"></span> ok <span class="swatch fail"></span> failed (striped)'
    ' <span class="swatch unknown"></span> unknown (spotted)'
)
_BAND = ' <span class="key band">▮</span> shaded: a fault is at work'


def write_report(run_dir: Path) -> Path:
    """Write report.html beside what it is about, and return where."""
    page = render(read_run(run_dir))
    path = run_dir / REPORT
    temporary = path.with_suffix(".tmp")
    temporary.write_text(page, encoding="utf-8")
    os.replace(temporary, path)
    return path


def render(run: Run) -> str:
    title = escaped(f"{run.drill}: {VERDICT_WORDS[run.verdict]}")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{NOTHING_ELSE}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{CSS}</style></head><body><main>",
            *_verdict(run),
            *_story(run),
            *_pictures(run),
            *_about(run),
            "</main></body></html>\n",
        ]
    )


# -- words


def _verdict(run: Run) -> list[str]:
    drilled = run.meta.get("title", "")
    torn = "The history was cut: the harness was killed before the run had ended."
    return [
        f'<header class="{run.verdict.lower()}">',
        f'<p class="verdict">{VERDICT_WORDS[run.verdict]}</p><h1>{_text(run.drill)}</h1>',
        f'<p class="drilled">The drill: {_text(drilled)}</p>' if drilled else "",
        f"<p>{_text(run.words)}</p>",
        f'<p class="torn">{torn}</p>' if run.history.is_torn else "",
        "</header>",
        *_counts(run),
        *_criteria(run.criteria),
        *_anomalies(run.anomalies),
    ]


def _counts(run: Run) -> list[str]:
    if not run.counts:
        return []
    counts = [
        f"<div><dt>{_text(COUNT_WORDS.get(name, name))}</dt><dd>{_text(count)}</dd></div>"
        for name, count in run.counts.items()
    ]
    return ['<dl class="counts" aria-label="Records">', *counts, "</dl>"]


def _criteria(criteria: Sequence[Criterion]) -> list[str]:
    if not criteria:
        return []
    rows = [
        (
            each.name,
            _figure(each.measured, each.unit) + _ratio(each),
            f"at most {_figure(each.target, each.unit)}",
            "✓ met" if each.ok else "✕ missed",
        )
        for each in criteria
    ]
    return ["<h2>Targets</h2>", table(("criterion", "measured", "target", "verdict"), rows)]


def _figure(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.4g} {unit}".strip()


def _ratio(criterion: Criterion) -> str:
    if criterion.ratio is None or not criterion.per:
        return ""
    return f" = {criterion.ratio:.2f} x {criterion.per}"


def _anomalies(anomalies: Sequence[str]) -> list[str]:
    if not anomalies:
        return ["<h2>Findings</h2><p>None: nothing that clients or files show breaks a rule.</p>"]
    shown = [f"<li><pre>{_text(each)}</pre></li>" for each in anomalies[:ANOMALIES_MAX]]
    rest = _rest(len(anomalies), len(shown), "results.json")
    return [f"<h2>Findings: {len(anomalies)}</h2><ol>", *shown, f"</ol>{rest}"]


def _story(run: Run) -> list[str]:
    lines = story(run.history)
    if not lines:
        return ["<h2>What happened</h2><p>Nothing was recorded.</p>"]
    shown = [
        f"<li><span class='when'>{each.t:.2f} s</span> {_text(each.words)}</li>"
        for each in lines[:LINES_MAX]
    ]
    rest = _rest(len(lines), len(shown), "history.jsonl")
    return ['<h2>What happened</h2><ul class="story">', *shown, f"</ul>{rest}"]


def _rest(every: int, shown: int, where: str) -> str:
    return f"<p>{every - shown:,} more are in {where}.</p>" if every > shown else ""


def _text(words: str) -> str:
    return escaped(shortened(words, WORDS_MAX))


# -- pictures


def _pictures(run: Run) -> list[str]:
    history, scale = run.history, lanes.scale_of(run.history)
    faults = longest(fault_spans(history))
    found = slices(history)
    return [
        "<h2>In pictures</h2><p>All share one time axis: seconds since the run began.</p>",
        f'<p class="legend">{_BAND}</p>{_hidden(PATTERNS)}',
        *_fault_section(run, faults),
        *_state_sections(run, faults),
        *_operations_section(run, faults),
        *_section(
            "Throughput",
            f"Operations that ended, per second: {_FILLS}",
            lanes.throughput_picture(scale, found, faults),
            _throughput_table(found),
        ),
        *_section(
            "Not yet read",
            "Records that were acknowledged and that no consumer had read by then. "
            "At the end of a good run there are none.",
            lanes.unseen_picture(scale, found, faults),
            _unseen_table(found),
        ),
    ]


def _hidden(inner: str) -> str:
    """Drawn nowhere, used by others."""
    return (
        '<svg width="0" height="0" aria-hidden="true" class="hidden"'
        f' xmlns="http://www.w3.org/2000/svg">{inner}</svg>'
    )


def _fault_section(run: Run, faults: Sequence[Span]) -> list[str]:
    phases = longest(phase_spans(run.history))
    return _section(
        "Faults",
        "The phases of the drill, and below them what was broken and for how long.",
        lanes.faults_picture(lanes.scale_of(run.history), phases, faults),
        _span_table([*phases, *faults], "target", "fault")
        + _rest(len(fault_spans(run.history)), len(faults), "history.jsonl"),
    )


def _state_sections(run: Run, faults: Sequence[Span]) -> list[str]:
    history, scale = run.history, lanes.scale_of(run.history)
    all_reigns, all_partitions = reign_spans(history), partition_spans(history)
    reigns, partitions = longest(all_reigns), longest(all_partitions)
    return [
        *_section(
            "Controller epochs",
            "Which controller led the quorum, from when its epoch was first seen to the next one.",
            lanes.reigns_picture(scale, reigns, faults),
            _span_table(reigns, "controller", "epoch")
            + _rest(len(all_reigns), len(reigns), "history.jsonl"),
        ),
        *_section(
            "Partition leaders and ISR",
            "Which broker led each partition, and the replicas that were in sync with it. "
            "A notched bar: fewer are in sync than before. Black: no leader.",
            lanes.leaders_picture(scale, partitions, faults),
            _span_table(partitions, "partition", "leader")
            + _rest(len(all_partitions), len(partitions), "history.jsonl"),
        ),
    ]


def _operations_section(run: Run, faults: Sequence[Span]) -> list[str]:
    history = run.history
    every, drawn = len(measured(history)), dots(history)
    thin = "" if len(drawn) == every else ", the slowest of each group of neighbours"
    return _section(
        "Client operations by latency",
        f"{_MARKS}. {len(drawn):,} of {every:,} operations are drawn{thin}.",
        lanes.operations_picture(lanes.scale_of(history), drawn, faults),
        _latency_table(run) + _failure_table(run),
    )


def _section(title: str, caption: str, picture: str, twin: str) -> list[str]:
    """The caption is of this module, and may have marks in it; all else is escaped already."""
    return [
        f"<section><h3>{title}</h3><figure><figcaption>{caption}</figcaption>{picture}</figure>",
        f"<details><summary>The same as a table</summary>{twin}</details></section>",
    ]


# -- tables


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


def _failure_table(run: Run) -> str:
    found = failures(run.history)
    if not found:
        return ""
    rows = [
        (each.op, str(each.outcome), each.error, str(each.count), f"{each.first:.3f}")
        for each in found[:FAILURES_MAX]
    ]
    head = ("operation", "outcome", "reason", "count", "first began at (s)")
    return table(head, rows) + _rest(len(found), len(rows), "history.jsonl")


def _throughput_table(found: Sequence[Slice]) -> str:
    rows = [
        (
            f"{each.begin:g}",
            f"{each.end:g}",
            *(str(each.counts[outcome]) for outcome in Outcome),
            f"{each.per_second:.4g}",
        )
        for each in found
    ]
    return table(("from (s)", "to (s)", *map(str, Outcome), "all per second"), rows)


def _unseen_table(found: Sequence[Slice]) -> str:
    rows = [(f"{each.end:g}", str(each.unseen)) for each in found]
    return table(("at (s)", "not yet read"), rows)


def _about(run: Run) -> list[str]:
    facts = [("seed", run.seed), *((name, fact) for name, fact in run.meta.items())]
    facts = [fact for number, fact in enumerate(facts) if fact not in facts[:number]]
    return ["<section><h2>About this run</h2>", table(("fact", "value"), facts), "</section>"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = [_row("<td>", "</td>", row) for row in rows]
    if not body:
        return "<p>None.</p>"
    top = _row('<th scope="col">', "</th>", head)
    return f"<table><thead>{top}</thead><tbody>{''.join(body)}</tbody></table>"


def _row(begin: str, end: str, cells: Sequence[str]) -> str:
    inner = "".join(f"{begin}{escaped(shortened(cell, CELL_MAX))}{end}" for cell in cells)
    return f"<tr>{inner}</tr>"
