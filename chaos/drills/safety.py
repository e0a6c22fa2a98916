"""Nothing lost, duplicated or reordered, and no invariant broken: by the checkers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.checkers import Anomaly, Finding, Judgement, judge, judge_files
from chaos.history import Event, History, Outcome, read_history
from chaos.live.run_directory import RunDirectory
from kraftlog.local.layout import BROKER, CONTROLLER, load

COUNTS = ("acked", "read", "lost", "duplicated", "reordered", "unknown")


@dataclass(frozen=True, slots=True)
class Safety:
    anomalies: tuple[str, ...]
    counts: Mapping[str, int]


def judge_safety(directory: RunDirectory, failures: Iterable[str] = ()) -> Safety:
    """What the history and the files say, and what the drill itself found wrong."""
    history = read_history(directory.history)
    judgement = judge(history).with_findings(_of_files(directory, history))
    found = [*failures]
    # A drill that broke off has not read everything: what was not seen says nothing then.
    broke_off = bool(found) and not any(map(_is_final, history.events_of("phase")))
    told = [each for each in judgement.findings if not (broke_off and _is_unseen(each))]
    found += map(str, told)
    counts = _counts(judgement, history)
    if not counts["acked"]:
        found.append("nothing was acknowledged, so nothing was tested")
    return Safety(tuple(found), counts)


def _is_final(event: Event) -> bool:
    return event.facts.get("phase") == "final"


def _is_unseen(finding: Finding) -> bool:
    return finding.anomaly is Anomaly.UNSEEN


def _counts(judgement: Judgement, history: History) -> dict[str, int]:
    """Of records; of a quorum alone, which has none, of changes and reads of its metadata."""
    if any(history.of("send")):
        return {name: judgement.counts.get(name, 0) for name in COUNTS}
    changes = Counter(each.outcome for each in history.of("create_topic", "delete_topic"))
    reads = Counter(each.outcome for each in history.of("list_topics"))
    return {
        "acked": changes[Outcome.OK],
        "read": reads[Outcome.OK],
        "unknown": changes[Outcome.UNKNOWN] + reads[Outcome.UNKNOWN],
        "contradicted": len(judgement.findings),
    }


def _of_files(directory: RunDirectory, history: History) -> list[Finding]:
    """The nodes of the cluster as they lie there, stopped."""
    layout = load(str(directory.cluster))
    if layout is None:
        return []

    def paths(role: str) -> dict[str, Path]:
        found = {each.name: Path(layout.data_path(each)) for each in layout.of_role(role)}
        return {name: path for name, path in found.items() if path.is_dir()}

    return judge_files(paths(CONTROLLER), paths(BROKER), history=history)
