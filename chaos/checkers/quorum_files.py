"""The logs of the controllers, side by side (Q2, Q4, Q6, Q11)."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from pathlib import Path

from chaos.checkers.findings import Anomaly, Finding
from chaos.checkers.logs import Entry, LogFiles, read_log
from kraftlog.errors import LogDamaged
from quorum.core.messages import BOOTSTRAP_SNAPSHOT, SnapshotId
from quorum.election_file import ELECTION_FILE, read_election
from quorum.snapshot_file import open_snapshot, parse_name, snapshot_name
from quorum.store import LOG_DIRECTORY
from storage.files import OsFiles


def read_metadata_logs(directories: Mapping[str, Path]) -> list[LogFiles]:
    """By node: its metadata log, with the values in it."""
    return [
        read_log(name, directory / LOG_DIRECTORY, with_values=True)
        for name, directory in sorted(directories.items())
    ]


def judge_quorum(logs: Sequence[LogFiles], *, committed: int = 0) -> list[Finding]:
    """`committed`: an offset up to which all is known to be committed, such as the highest that a
    client was told.
    """
    found = [finding for log in logs for finding in log.findings]
    for log in logs:
        found += _election(log)
        found += judge_snapshots(log)
    for one, two in combinations(logs, 2):
        found += _matching(one, two)
    if committed:
        found += _durable(logs, committed)
    return found


# -- Q2


def _election(log: LogFiles) -> Iterator[Finding]:
    path = log.path / ELECTION_FILE
    try:
        election = read_election(OsFiles(), os.fspath(path))
    except LogDamaged as error:
        yield Finding(Anomaly.Q2, log.name, error.message)
        return
    last = log.entries[-1] if log.entries else None
    if last is not None and last.epoch > election.epoch:
        words = f"its vote is of epoch {election.epoch}, its log has reached epoch {last.epoch}"
        yield Finding(Anomaly.Q2, log.name, words, (last.offset,))


# -- Q11


def snapshots_of(log: LogFiles) -> list[SnapshotId]:
    """Snapshots of a metadata log, oldest first; not the one with the first voters."""
    names = sorted(os.listdir(log.path)) if log.path.is_dir() else []
    found = [snapshot for name in names if (snapshot := parse_name(name)) is not None]
    return [snapshot for snapshot in found if snapshot != BOOTSTRAP_SNAPSHOT]


def judge_snapshots(log: LogFiles) -> Iterator[Finding]:
    """Those of a node are whole, and hold what its log no longer has."""
    snapshots = snapshots_of(log)
    for snapshot in snapshots:
        path = log.path / snapshot_name(snapshot)
        try:
            open_snapshot(OsFiles(), os.fspath(path), snapshot)
        except LogDamaged as error:
            yield Finding(Anomaly.Q11, log.name, error.message, (snapshot.end_offset,))
    newest = snapshots[-1].end_offset if snapshots else 0
    if log.start > newest:
        words = f"the log begins at {log.start}, and no snapshot holds what is before"
        yield Finding(Anomaly.Q11, log.name, words, (log.start,))


# -- Q4


def _matching(one: LogFiles, two: LogFiles) -> Iterator[Finding]:
    """The last offset with one epoch in both: up to there they are the same."""
    theirs = {entry.offset: entry for entry in two.entries}
    pairs = [(entry, theirs[entry.offset]) for entry in one.entries if entry.offset in theirs]
    same = [index for index, (a, b) in enumerate(pairs) if a.epoch == b.epoch]
    last = pairs[same[-1]][0].offset if same else -1
    begin = max(one.start, two.start)
    mine = one.between(begin, last + 1) + _at(one, last)
    other = two.between(begin, last + 1) + _at(two, last)
    for a, b in zip(_once(mine), _once(other), strict=False):
        if a != b:
            words = f"{one.name} has {a}, {two.name} has {b}, and both agree at offset {last}"
            yield Finding(Anomaly.Q4, f"{one.name} {two.name}", words, (a.offset, last))
            return


def _at(log: LogFiles, offset: int) -> list[Entry]:
    return [entry for entry in log.entries if entry.offset == offset]


def _once(entries: list[Entry]) -> list[Entry]:
    return list(dict.fromkeys(entries))


# -- Q6


def _durable(logs: Sequence[LogFiles], committed: int) -> Iterator[Finding]:
    """A majority holds all that was committed, and holds the same."""
    majority = len(logs) // 2 + 1
    held = [log for log in logs if _reach(log) >= committed]
    if len(held) < majority:
        ends = ", ".join(f"{log.name} {_reach(log)}" for log in logs)
        words = f"all below {committed} was committed, and the logs end at: {ends}"
        yield Finding(Anomaly.Q6, "quorum", words, (committed,))
        return
    begin = max(log.start for log in held)
    contents = Counter(_content(log, begin, committed) for log in held)
    if max(contents.values()) < majority:
        words = f"no majority agrees about the committed offsets {begin} to {committed - 1}"
        yield Finding(Anomaly.Q6, "quorum", words, (begin, committed))


def _reach(log: LogFiles) -> int:
    snapshots = snapshots_of(log)
    return max([log.end, *(snapshot.end_offset for snapshot in snapshots)])


def _content(log: LogFiles, begin: int, end: int) -> bytes:
    state = blake2b()
    for entry in log.entries:
        if begin <= entry.offset < end:
            state.update(entry.digest)
    return state.digest()
