"""What is in the metadata log of a controller that has stopped, read from its files."""

from dataclasses import dataclass

from kraftlog.clock import SystemClock
from kraftlog.record_batch import read_batches
from quorum.batches import decode_batch
from quorum.core.messages import LeaderChange
from quorum.store import Store
from storage.files import OsFiles

READ_BYTES = 4 << 20


@dataclass(frozen=True)
class FoundLog:
    records: dict[int, bytes]
    """Data records by offset."""
    leaders: list[tuple[int, int]]
    """Epoch and node id of each leader, in log order."""
    end_offset: int


def read_log(directory: str) -> FoundLog:
    store = Store(OsFiles(), directory, SystemClock())
    records: dict[int, bytes] = {}
    leaders: list[tuple[int, int]] = []
    offset, end = store.log.start_offset, store.log.end_offset
    while offset < end:
        part = store.log.read(offset, READ_BYTES)
        for batch in read_batches(part.read()):
            batch.check_crc()
            control = decode_batch(batch).control
            if isinstance(control, LeaderChange):
                leaders.append((batch.leader_epoch, control.leader.node_id))
            elif control is None:
                records |= {each.offset: each.value or b"" for each in batch.records()}
        offset = part.next_offset
    store.close()
    return FoundLog(records, leaders, end)
