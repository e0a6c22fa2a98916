"""The metadata log replayed: the image after each batch (M5, M6, M7, M9, Q11), and what the log
did to topics, for the judge of metadata operations.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chaos.checkers.findings import Anomaly, Finding
from chaos.checkers.logs import Entry, LogFiles
from chaos.checkers.metadata import LoggedChange
from chaos.checkers.quorum_files import snapshots_of
from kraftlog.config import Config
from kraftlog.errors import KraftError, LogDamaged
from kraftlog.types import Uuid
from metadata_log.codec import decode_record
from metadata_log.effective import BUILT_IN
from metadata_log.image import EMPTY, Image
from metadata_log.records import Record, RemoveTopic, TopicRecord
from metadata_log.replay import load, replay_all
from metadata_log.rules import broken, broken_since
from metadata_log.snapshot import digest
from quorum.core.messages import SnapshotId
from quorum.snapshot_file import open_snapshot, snapshot_name
from storage.files import OsFiles

_RULES = {str(anomaly): anomaly for anomaly in (Anomaly.M5, Anomaly.M6, Anomaly.M7, Anomaly.M9)}


@dataclass(slots=True)
class Replayed:
    """One node's log as images."""

    log: LogFiles
    start_offset: int = 0
    """Replay began here, with a snapshot if it is above 0."""
    image: Image = EMPTY
    findings: list[Finding] = field(default_factory=list)
    changes: list[LoggedChange] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)
    """Of the images at the offsets that somebody asked about."""
    epochs: dict[int, int] = field(default_factory=dict)
    """Of the last record below each of them."""


def replay_log(
    log: LogFiles, *, static: Config = BUILT_IN, asked: frozenset[int] = frozenset()
) -> Replayed:
    """Every image on the way is held against the rules, up to the first record that does not fit.

    `static` is the configuration of the controllers, `asked` the offsets to be compared.
    """
    replay = _Replay(log, static, asked | {each.end_offset for each in snapshots_of(log)})
    try:
        replay.run()
    except KraftError as error:
        anomaly = Anomaly.M6 if f"({Anomaly.M6})" in str(error) else Anomaly.M5
        replay.note(anomaly, f"cannot be replayed: {error}")
    return replay.result


class _Replay:
    def __init__(self, log: LogFiles, static: Config, asked: frozenset[int]) -> None:
        self.result = Replayed(log)
        self.static = static
        self.asked = asked
        self.names: dict[Uuid, str] = {}

    def note(self, anomaly: Anomaly, words: str) -> None:
        result = self.result
        offset = result.image.end_offset
        result.findings.append(Finding(anomaly, result.log.name, words, (offset,)))

    def run(self) -> None:
        if self.result.log.start > 0 and not self._load_snapshot():
            return  # Q11 says so: judge_snapshots
        for entry in self.result.log.entries:
            if entry.offset >= self.result.start_offset:
                self._take(entry)
        self._check_snapshots()

    def _load_snapshot(self) -> bool:
        """Begin with the oldest from which the log goes on."""
        log, result = self.result.log, self.result
        for snapshot in snapshots_of(log):
            image = _image_of(log, snapshot) if snapshot.end_offset >= log.start else None
            if image is not None:
                result.image, result.start_offset = image, snapshot.end_offset
                result.epochs[snapshot.end_offset] = snapshot.epoch
                self.names = {topic.id: topic.name for topic in image.topics.values()}
                self._keep_digest(result.start_offset)
                return True
        return False

    def _take(self, entry: Entry) -> None:
        before = self.result.image
        records = [decode_record(value) for value in entry.values or ()]
        after = replay_all(before, records, entry.offset)
        if records:
            for rule in [*broken(after, self.static), *broken_since(before, after)]:
                self._check(rule, entry)
        self.result.image = after
        self.result.changes += self._changes(records, entry.next_offset)
        self.result.epochs[entry.next_offset] = entry.epoch
        self._keep_digest(entry.next_offset)

    def _check(self, rule: str, entry: Entry) -> None:
        """Only what INVARIANTS.md names; the rest depends on what this program does today."""
        anomaly = _RULES.get(rule.partition(" ")[0])
        if anomaly is not None:
            self.note(anomaly, f"after the batch at offset {entry.offset}: {rule}")

    def _changes(self, records: Sequence[Record], end: int) -> Iterator[LoggedChange]:
        for record in records:
            if isinstance(record, TopicRecord):
                self.names[record.topic_id] = record.name
                yield LoggedChange(record.name, True, end)
            elif isinstance(record, RemoveTopic):
                yield LoggedChange(self.names.pop(record.topic_id, ""), False, end)

    def _keep_digest(self, offset: int) -> None:
        if offset in self.asked:
            self.result.digests[offset] = digest(self.result.image)

    def _check_snapshots(self) -> None:
        """Q11: a snapshot is the replay of everything below it."""
        log, result = self.result.log, self.result
        for snapshot in snapshots_of(log):
            known = result.digests.get(snapshot.end_offset)
            if known is None or snapshot.end_offset == result.start_offset:
                continue
            image = _image_of(log, snapshot)
            if image is not None and digest(image) != known:
                words = f"the snapshot at {snapshot.end_offset} is not the replay of the log"
                self.note(Anomaly.Q11, words)


def _image_of(log: LogFiles, snapshot: SnapshotId) -> Image | None:
    """None if the file is damaged, which `judge_snapshots` names."""
    path = os.fspath(log.path / snapshot_name(snapshot))
    try:
        values = open_snapshot(OsFiles(), path, snapshot).values()
    except LogDamaged:
        return None
    return load(map(decode_record, values), snapshot.end_offset)


def judge_images(
    logs: Sequence[LogFiles], *, committed: int = 0, static: Config = BUILT_IN
) -> tuple[list[Finding], list[Replayed]]:
    """M5: at one offset the image is the same on all nodes. Without `committed` they are compared
    where the shortest of them ends. A log whose last record is of another epoch there holds what
    was never committed; whether it may is for Q6 to say.
    """
    present = [log for log in logs if log.entries]
    at = committed or min((log.end for log in present), default=0)
    replays = [replay_log(log, static=static, asked=frozenset({at})) for log in present]
    found = [finding for replay in replays for finding in replay.findings]
    known: dict[int, Replayed] = {}
    for replay in replays:
        if at not in replay.digests:
            continue
        first = known.setdefault(replay.epochs[at], replay)
        if replay.digests[at] != first.digests[at]:
            names = f"{first.log.name} {replay.log.name}"
            found.append(Finding(Anomaly.M5, names, f"their images differ at offset {at}", (at,)))
    return found, replays
