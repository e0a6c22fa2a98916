"""A writer to be killed: appends batches that can be told from their offset, and says what it has
flushed.

python -m tests.storage.kill_writer DIRECTORY TARGET_BYTES
"""

import sys

from kraftlog.clock import SystemClock
from kraftlog.record_batch import encode_values
from storage.files import OsFiles
from storage.log_config import LogConfig
from storage.recovery import OpenOptions, open_log

RECORDS = 64
FLUSH_EVERY = 16
CONFIG = LogConfig(segment_bytes=16 << 20)


def batch_at(offset: int) -> bytearray:
    """The one batch that may stand at `offset`."""
    values = [b"%020d" % (offset + n) * 50 for n in range(RECORDS)]
    return bytearray(
        encode_values(
            values, timestamp=1_700_000_000_000 + offset, base_offset=offset, leader_epoch=1
        )
    )


def main(directory: str, target_bytes: int) -> None:
    log = open_log(OsFiles(), directory, CONFIG, SystemClock(), OpenOptions())
    print(f"opened {log.end_offset} {log.size}", flush=True)
    while log.size < target_bytes:
        for _ in range(FLUSH_EVERY):
            log.append(batch_at(log.end_offset), leader_epoch=1)
        print(f"flushed {log.flush()} {log.size}", flush=True)
    log.close()
    print(f"closed {log.end_offset} {log.size}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
