"""Judges: what clients saw, by the history; what the nodes have, by their files.

Everything here reads what a run left behind, so that a run can be judged again years later. No
cluster is needed, and no judge trusts another: lost records come from the values that were read,
never from counts.
"""

from chaos.checkers.files import judge_files
from chaos.checkers.findings import Anomaly, Finding, Judgement
from chaos.checkers.judging import judge

__all__ = ["Anomaly", "Finding", "Judgement", "judge", "judge_files"]
