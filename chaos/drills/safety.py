"""Nothing lost, duplicated or reordered, and no invariant broken: by the checkers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chaos.checkers import judge
from chaos.history import read_history
from chaos.live.run_directory import RunDirectory

COUNTS = ("acked", "read", "lost", "duplicated", "reordered", "unknown")


@dataclass(frozen=True, slots=True)
class Safety:
    anomalies: tuple[str, ...]
    counts: Mapping[str, int]


def judge_safety(directory: RunDirectory, failures: Iterable[str] = ()) -> Safety:
    """What the history and the files say, and what the drill itself found wrong."""
    judgement = judge(read_history(directory.history))
    anomalies = [str(each) for each in judgement.findings]
    return Safety(
        (*failures, *anomalies, *_of_files(directory)),
        {name: judgement.counts.get(name, 0) for name in COUNTS},
    )


def _of_files(directory: RunDirectory) -> list[str]:
    return []
