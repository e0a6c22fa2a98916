"""The verdict about a history: all judges that need nothing but what was recorded."""

from collections.abc import Iterator

from chaos.checkers.findings import Anomaly, Finding, Judgement, counted
from chaos.checkers.metadata import judge_metadata
from chaos.checkers.partitions import judge_partitions
from chaos.history import History, Json


def judge(history: History, *, final_read: str = "final") -> Judgement:
    """`final_read` is the process that read all partitions from their start after the faults had
    ended. Without such polls a record counts as read if anybody read it.
    """
    found, counts = judge_partitions(history, final_read=final_read)
    findings = (*found, *judge_metadata(history), *_leaders(history))
    return Judgement(findings, {**counts, **counted(findings)})


def _leaders(history: History) -> Iterator[Finding]:
    """Q1 and P4: an epoch has one leader, whoever was asked and whenever."""
    leaders: dict[tuple[str, Json], Json] = {}
    for event in history.events_of("controller", "leader", "isr"):
        leader, epoch = event.facts.get("leader"), event.facts.get("epoch")
        if leader is None or epoch is None:
            continue
        anomaly, key = Anomaly.Q1, "quorum"
        if event.what != "controller":
            key = f"{event.facts.get('topic')}-{event.facts.get('partition')}"
            anomaly = Anomaly.P4
        known = leaders.setdefault((key, epoch), leader)
        if known != leader:
            leaders[key, epoch] = leader
            words = f"{known} and {leader} both lead epoch {epoch}, seen at {event.t:.3f} s"
            yield Finding(anomaly, key, words)
