"""What the tests of the dump share: a log with two segments, and the events of one file."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from kraftlog.record_batch import RecordBatch, read_batches
from kraftlog.types import Compression
from storage.dump_events import Event, FileEnd, Finding, Options, Row, Severity
from storage.dump_walk import dump_target, find_targets
from storage.files import OsFiles
from tests.storage.logs import TIME_MS, batch, opened, small_segments

FIRST = f"{0:020d}"
SECOND = f"{24:020d}"
END = f"{30:020d}"


def write_log(directory: Path, name: str = "orders-0") -> Path:
    """A closed log: offsets 0 to 23 in the first segment, 24 to 29 in the second.

    A batch has two records and one of the five codecs. Epoch 1 begins at offset 20.
    """
    path = directory / name
    log = opened(OsFiles(), str(path), small_segments(100_000))
    for number, codec in enumerate([*Compression] * 3):
        values = (b"value %d" % number, b"\x00\xff")
        producer = (7, 0, 2 * number)
        made = batch(*values, timestamp=TIME_MS + number, compression=codec, producer=producer)
        log.append(made, leader_epoch=0 if number < 10 else 1)
        if number == 11:
            log.roll()
    log.flush()
    log.close()
    return path


def batches_of(path: Path) -> list[RecordBatch]:
    return list(read_batches(path.read_bytes()))


def position_of(path: Path, number: int) -> int:
    """Where the batch of this number begins in a file that is whole."""
    return sum(each.size for each in batches_of(path)[:number])


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def cut(path: Path, count: int) -> None:
    """Take the last `count` bytes off."""
    path.write_bytes(path.read_bytes()[:-count])


def events(path: Path, options: Options | None = None) -> list[Event]:
    return list(_events(path, options or Options()))


def _events(path: Path, options: Options) -> Iterator[Event]:
    files = OsFiles()
    for target in find_targets(files, str(path)):
        yield from dump_target(files, target, options)


def rows(found: Iterable[Event]) -> list[Row]:
    return [event for event in found if isinstance(event, Row)]


def findings(found: Iterable[Event]) -> list[Finding]:
    return [event for event in found if isinstance(event, Finding)]


def damage(found: Iterable[Event]) -> list[Finding]:
    return [finding for finding in findings(found) if finding.severity is Severity.DAMAGE]


def ends(found: Iterable[Event]) -> list[FileEnd]:
    return [event for event in found if isinstance(event, FileEnd)]
