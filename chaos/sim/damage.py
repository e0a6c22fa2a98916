"""Bits that flip in what was durable: the node must find it and refuse to start (Q15)."""

from random import Random

from chaos.sim.node import DIRECTORY, newest_snapshot
from kraftlog.record_batch import HEADER_BYTES, read_batches
from quorum.election_file import ELECTION_FILE
from quorum.store import log_directory
from storage.model_disk import ModelDisk

LOG_SUFFIX = ".log"


def flip_election_bit(disk: ModelDisk, dice: Random) -> bool:
    """Any bit of `quorum-state`: no flipped one makes another vote."""
    _flip_any(disk, f"{log_directory(DIRECTORY)}/{ELECTION_FILE}", dice)
    return True


def flip_snapshot_bit(disk: ModelDisk, dice: Random) -> str | None:
    """Any bit of the newest snapshot; its path, or None if there is none."""
    path = newest_snapshot(disk)
    if path:
        _flip_any(disk, path, dice)
    return path


def _flip_any(disk: ModelDisk, path: str, dice: Random) -> None:
    disk.flip_bit(path, dice.randrange(disk.size(path)), dice.randrange(8))


def flip_flushed_bit(disk: ModelDisk, flushed_offset: int, dice: Random) -> bool:
    """Flip one bit of a batch below the flushed offset; False if there is none.

    Not in a header: base offset and leader epoch are outside the CRC, as in Kafka, so that nobody
    can tell such a batch from a good one.
    """
    found = []
    directory = log_directory(DIRECTORY)
    for name in disk.list_dir(directory):
        path, position = f"{directory}/{name}", 0
        if not name.endswith(LOG_SUFFIX):
            continue
        for batch in read_batches(disk.read_bytes(path)):
            if batch.next_offset <= flushed_offset:
                found.append((path, position, batch.size))
            position += batch.size
    if not found:
        return False
    path, position, size = dice.choice(found)
    disk.flip_bit(path, position + dice.randrange(HEADER_BYTES, size), dice.randrange(8))
    return True
