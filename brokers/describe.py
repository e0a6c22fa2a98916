"""What a broker has of its partitions, as it is on its disk: also where it does not lead."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

from crc32c import crc32c

from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.partition_table import PartitionTable
from brokers.requests import DigestOf, ReplicaInfo
from storage.log import Log

DIGEST_CHUNK_BYTES = 1 << 20

InExecutor = Callable[[Callable[[], int]], "asyncio.Future[int]"]


async def describe(
    table: PartitionTable,
    partitions: Sequence[PartitionId] | None,
    digest_of: DigestOf,
    in_executor: InExecutor,
) -> list[ReplicaInfo]:
    """What is here of these partitions, or of all. The digest of the same committed offsets is the
    same on all replicas, but for what each has compacted at its own time.
    """
    names = list(table.hosted) if partitions is None else partitions
    hosted = [table.hosted[name] for name in names if name in table.hosted]
    found = []
    for partition in sorted(hosted, key=lambda each: each.name):
        crc = await _digest_off_loop(partition, digest_of, in_executor)
        found.append(_info(partition, crc))
    return found


def _info(partition: Partition, crc: int | None) -> ReplicaInfo:
    log = partition.log
    return ReplicaInfo(
        partition.id,
        partition.name.topic,
        os.path.dirname(log.directory) if log else "",
        log.size if log else 0,
        partition.start_offset,
        partition.high_watermark,
        partition.end_offset,
        partition.state.leader_epoch,
        partition.is_leader,
        crc,
    )


async def _digest_off_loop(
    partition: Partition, digest_of: DigestOf, in_executor: InExecutor
) -> int | None:
    first, limit = partition.start_offset, partition.high_watermark
    if isinstance(digest_of, Mapping):
        wanted = digest_of.get(partition.id)
    else:
        wanted = (first, limit) if digest_of else None
    if wanted is None or wanted[0] < first or wanted[1] > limit:
        return None
    log, (start, end) = partition.log, wanted
    return await in_executor(lambda: digest(log, start, end)) if log is not None else 0


def digest(log: Log, start: int, end: int) -> int:
    """The CRC-32C of all batches from `start` to `end`, one after the other."""
    crc, offset = 0, start
    while offset < end:
        part = log.read(offset, DIGEST_CHUNK_BYTES, limit=end)
        if not part.length:
            break
        crc = crc32c(part.read(), crc)
        offset = part.next_offset
    return crc
