"""Producer state on disk: a `<offset>.snapshot` file tells the state of all producers just before
that offset.

One is written when a segment is sealed and when the log closes. They are derived files: a missing
or damaged one costs a longer replay, never a wrong answer. Truncation must drop those beyond the
cut, because the offsets there will be used again for other batches.
"""

from collections.abc import Iterable, Sequence

from storage.damage import StateDamaged
from storage.files import Files
from storage.producer_state import ProducerStates
from storage.segment import SNAPSHOT_SUFFIX, Segment, file_name


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among a directory's file names, in order."""
    stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"


def restore_producers(
    files: Files, directory: str, segments: Sequence[Segment], end_offset: int
) -> ProducerStates:
    """The state at `end_offset`: the newest usable snapshot, and the batches from there on."""
    names = files.list_dir(directory) if files.is_dir(directory) else []
    for offset in reversed(snapshot_offsets(names)):
        if offset > end_offset:
            continue
        states = ProducerStates(directory)
        try:
            states.load(files, snapshot_path(directory, offset))
        except StateDamaged:
            files.remove(snapshot_path(directory, offset))
            continue
        return _replay(states, segments, offset, end_offset)
    return _replay(ProducerStates(directory), segments, 0, end_offset)


def _replay(
    states: ProducerStates, segments: Sequence[Segment], from_offset: int, end_offset: int
) -> ProducerStates:
    for segment in segments:
        if segment.next_offset <= from_offset or segment.base_offset >= end_offset:
            continue
        extent = segment.locate(from_offset)
        for _, batch in segment.batches(extent.position) if extent else ():
            if batch.has_producer and batch.base_offset >= from_offset:
                states.update(batch)
    return states


def drop_snapshots_after(files: Files, directory: str, offset: int) -> None:
    """Remove, newest first, the snapshots beyond `offset`."""
    for found in reversed(snapshot_offsets(files.list_dir(directory))):
        if found > offset:
            files.remove(snapshot_path(directory, found))


def drop_snapshots_before(files: Files, directory: str, offset: int) -> None:
    for found in snapshot_offsets(files.list_dir(directory)):
        if found < offset:
            files.remove(snapshot_path(directory, found))
