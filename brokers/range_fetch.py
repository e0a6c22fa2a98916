"""A range of one partition, in pieces of about a megabyte: for readers that plan by ranges.

Whole batches come, so the first may begin before the range and the last may end after it. Each
piece is read when the one before is taken, so the reader sets the pace.
"""

from collections.abc import AsyncIterator

from brokers.partition import Partition
from brokers.partition_table import PartitionTable
from brokers.refusals import Refused, offset_not_available, out_of_range
from brokers.requests import RangePiece, RangeRequest
from brokers.settings import REPLY_BYTES_MAX
from kraftlog.clock import Clock
from kraftlog.errors import KraftError


async def fetch_range(
    table: PartitionTable, clock: Clock, request: RangeRequest
) -> AsyncIterator[RangePiece]:
    """Pieces until the range is done; one with an error is the last."""
    offset = request.from_offset
    while True:
        piece = _read_piece(table, clock, request, offset)
        yield piece
        if piece.error is not None or piece.next_offset >= request.to_offset:
            return
        offset = piece.next_offset


def _read_piece(
    table: PartitionTable, clock: Clock, request: RangeRequest, offset: int
) -> RangePiece:
    try:
        partition = table.find(request.partition)
        partition.check_leader(request.leader_epoch)
        partition.check_serving(clock.monotonic_ms())
        _check_range(partition, offset, request.to_offset)
        return _read(partition, request, offset)
    except Refused as refused:
        return RangePiece(error=refused.error, leader=refused.leader)
    except KraftError as error:
        return RangePiece(error=error)


def _check_range(partition: Partition, offset: int, to_offset: int) -> None:
    start, end = partition.start_offset, partition.end_offset
    if not start <= offset <= to_offset <= end:
        raise out_of_range(partition.name, to_offset if to_offset > end else offset, start, end)
    if to_offset > partition.high_watermark:
        raise offset_not_available(partition.name, to_offset, partition.high_watermark)


def _read(partition: Partition, request: RangeRequest, offset: int) -> RangePiece:
    to_offset, high_watermark = request.to_offset, partition.high_watermark
    if offset >= to_offset:
        return RangePiece(b"", to_offset, high_watermark)
    # The range may end inside a batch: read on to the end of that one.
    limit = partition.data.locate(to_offset - 1, 1, high_watermark).next_offset
    found = partition.data.locate(offset, min(request.message_bytes, REPLY_BYTES_MAX), limit)
    return RangePiece(found.read(), found.next_offset, high_watermark)
