"""The verdict about the files that a cluster left: all nodes stopped, nothing repaired."""

from collections.abc import Collection, Mapping
from pathlib import Path

from chaos.checkers.findings import Finding
from chaos.checkers.metadata import judge_against_log
from chaos.checkers.metadata_files import Replayed, judge_images
from chaos.checkers.operations import topic_changes
from chaos.checkers.partition_files import judge_replicas
from chaos.checkers.quorum_files import judge_quorum, judge_snapshots, read_metadata_logs
from chaos.history import History
from kraftlog.config import Config
from metadata_log.effective import BUILT_IN


def judge_files(
    controllers: Mapping[str, Path],
    brokers: Mapping[str, Path],
    *,
    history: History | None = None,
    static: Config = BUILT_IN,
    compacted: Collection[str] = (),
) -> list[Finding]:
    """Node names and their data directories. With a history, what clients were told about metadata
    is held against the newest log, as an election would see it.
    """
    committed = _acked_end(history) if history else 0
    voters = read_metadata_logs(controllers)
    observers = [log for log in read_metadata_logs(brokers) if log.entries]
    found = judge_quorum(voters, committed=committed)
    for log in observers:
        found += [*log.findings, *judge_snapshots(log)]
    of_images, replays = judge_images([*voters, *observers], committed=committed, static=static)
    found += of_images
    newest = max(replays, key=_newness, default=None)
    if history is not None and newest is not None:
        start = newest.start_offset
        found += judge_against_log(history, newest.changes, start_offset=start)
    return found + judge_replicas(brokers, compacted=compacted)


def _newness(replay: Replayed) -> tuple[int, int]:
    last = replay.log.entries[-1]
    return last.epoch, last.next_offset


def _acked_end(history: History) -> int:
    return max((change.offset or 0 for change in topic_changes(history)), default=0)
