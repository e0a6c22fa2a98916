"""The small files beside the segments: producers, leader epochs, checkpoints, properties.

Each is read as the log engine reads it, so what is called damaged here is what the engine refuses.
"""

import os
from collections.abc import Callable, Iterator

from kraftlog.errors import LogDamaged
from storage.checkpoint import RecoveryPoint, read_offsets, read_partition_metadata
from storage.damage import StateDamaged, read_derived
from storage.dump_events import Event, FileEnd, Finding, Json, Kind, LogFile, Options, Row, Severity
from storage.dump_log import Place
from storage.epoch_cache import EpochCache
from storage.files import Files
from storage.meta_properties import read_meta_properties
from storage.producer_state import decode_snapshot

REBUILT_HINT = "it is made from the log: the next start makes it anew"
RECOVERY_POINT_HINT = (
    "how much of the log was flushed is not known any more: the next start scans it as a whole"
)


def dump_state(files: Files, state: LogFile, place: Place, options: Options) -> Iterator[Event]:
    """The entries of a small file, all or none of them: it is whole or it is damaged."""
    findings: list[Finding] = []
    rows: list[Row] = []
    try:
        rows = _READERS[state.kind](files, state)
        findings = _compare(state, rows, place) if options.verify else []
    except StateDamaged as damage:
        findings = [_damage(state, damage.why, REBUILT_HINT)]
    except LogDamaged as damage:
        what = damage.message.removeprefix(state.path).lstrip(": ")
        findings = [_damage(state, what, damage.hint)]
    if not options.verify:
        yield from rows
    yield from findings
    yield FileEnd({"entries": len(rows), "bytes": files.size(state.path)})


def _damage(state: LogFile, what: str, hint: str) -> Finding:
    return Finding(path=state.path, severity=Severity.DAMAGE, what=what, hint=hint)


def _producers(files: Files, state: LogFile) -> list[Row]:
    entries = decode_snapshot(read_derived(files, state.path), state.path)
    return [
        Row(
            Kind.PRODUCERS,
            {
                "producerId": entry.producer_id,
                "producerEpoch": entry.epoch,
                "lastSequence": entry.last_sequence,
                "lastOffset": entry.last_offset,
                "offsetDelta": entry.offset_delta,
                "lastTimestamp": entry.timestamp,
                "coordinatorEpoch": entry.coordinator_epoch,
                "currentTxnFirstOffset": entry.current_txn_first_offset,
            },
        )
        for entry in entries
    ]


def _epochs(files: Files, state: LogFile) -> list[Row]:
    epochs = EpochCache(files, state.path)
    epochs.load()
    return [
        Row(Kind.EPOCHS, {"epoch": entry.epoch, "startOffset": entry.start_offset})
        for entry in epochs.entries()
    ]


def _recovery_point(files: Files, state: LogFile) -> list[Row]:
    offset = read_flushed_offset(files, state.path)
    if offset is None:
        raise LogDamaged(f"{state.path}: it is not readable", hint=RECOVERY_POINT_HINT)
    return [Row(Kind.RECOVERY_POINT, {"offset": offset})]


def read_flushed_offset(files: Files, path: str) -> int | None:
    """What a recovery point says; None if it is missing or not readable."""
    point = RecoveryPoint(files, path)
    try:
        return point.read().offset
    finally:
        point.close()


def _offsets(files: Files, state: LogFile) -> list[Row]:
    return [
        Row(
            Kind.OFFSETS,
            {"topic": partition.topic, "partition": partition.partition, "offset": offset},
        )
        for partition, offset in read_offsets(files, state.path).items()
    ]


def _partition_metadata(files: Files, state: LogFile) -> list[Row]:
    topic_id = read_partition_metadata(files, os.path.dirname(state.path) or ".")
    return [Row(Kind.PARTITION_METADATA, {"topicId": str(topic_id)})] if topic_id else []


def _meta_properties(files: Files, state: LogFile) -> list[Row]:
    properties = read_meta_properties(files, os.path.dirname(state.path) or ".")
    entries: dict[str, Json] = dict(properties.entries) if properties else {}
    return [Row(Kind.META_PROPERTIES, entries)]


_READERS: dict[Kind, Callable[[Files, LogFile], list[Row]]] = {
    Kind.PRODUCERS: _producers,
    Kind.EPOCHS: _epochs,
    Kind.RECOVERY_POINT: _recovery_point,
    Kind.OFFSETS: _offsets,
    Kind.PARTITION_METADATA: _partition_metadata,
    Kind.META_PROPERTIES: _meta_properties,
}


# -- against the log


def _compare(state: LogFile, rows: list[Row], place: Place) -> list[Finding]:
    if state.kind is Kind.EPOCHS:
        return _compare_epochs(state, rows, place)
    if state.kind is Kind.PRODUCERS:
        return _compare_producers(state, rows)
    return []


def _compare_epochs(state: LogFile, rows: list[Row], place: Place) -> list[Finding]:
    """Where the first batch of an epoch contradicts the file.

    Only below the recovery point: the file may be written later than the batches beyond it. Where
    compaction took the first batches of an epoch, it begins earlier here than in the log.
    """
    starts = [(row.fields["startOffset"], row.fields["epoch"]) for row in rows]
    findings = []
    for seen in place.chain.epoch_starts:
        if place.flushed_offset is None or seen.start_offset >= place.flushed_offset:
            break
        told = [epoch for start, epoch in starts if int(str(start)) <= seen.start_offset]
        if told[-1:] != [seen.epoch]:
            what = f"says epoch {told[-1]}" if told else "knows no epoch"
            what += f", the batch there has {seen.epoch}"
            findings.append(
                Finding(
                    path=state.path,
                    severity=Severity.DAMAGE,
                    offset=seen.start_offset,
                    what=what,
                    hint="remove it while nobody has the log open: the next start makes it anew",
                )
            )
    return findings


def _compare_producers(state: LogFile, rows: list[Row]) -> list[Finding]:
    """A snapshot is about what is below the offset in its name."""
    end = state.base_offset or 0
    return [
        _damage(
            state,
            f"producer {row.fields['producerId']} has last offset {row.fields['lastOffset']},"
            f" the snapshot was made at {end}",
            REBUILT_HINT,
        )
        for row in rows
        if int(str(row.fields["lastOffset"])) >= end
    ]
