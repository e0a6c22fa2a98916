"""Kafka's own DumpLogSegments reads what the log engine writes.

KAFKA_LIBS names a directory with the jars of a Kafka release (its `libs`). Without it these tests
are skipped; with it whatever is missing is a failure.
"""

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftlog.record_batch import Record, encode_batch
from kraftlog.types import Compression
from storage.dump import main
from storage.files import OsFiles
from storage.log import Log
from tests.storage.logs import TIME_MS, opened, small_segments

LIBS = os.environ.get("KAFKA_LIBS", "")
# Where Kafka 4.3 has it, and where older releases do.
TOOLS = ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments")
COMPLAINTS = re.compile(
    r"mismatch|not found in|out of order|non-consecutive|invalid|exception|corrupt|recovered",
    re.IGNORECASE,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not LIBS,
        reason="KAFKA_LIBS is not set: whether Kafka's own tools read our files was NOT checked."
        " Set it to a directory with the jars of a Kafka release.",
    ),
]

BATCHES = 40
PRODUCER = 4_711


class Dumped(NamedTuple):
    """A record as both tools show it."""

    offset: int
    timestamp: int
    key: str | None
    value: str | None
    headers: tuple[str, ...]


# -- a log with all that a batch can be


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "orders-0"
    log = opened(OsFiles(), str(path), small_segments(2_000))
    for number in range(BATCHES):
        append(log, written(number), codec=list(Compression)[number % 5], sequence=3 * number)
    commit(log)
    append(log, written(BATCHES), codec=Compression.NONE, sequence=-1, producer_id=-1)
    log.flush()
    log.close()
    return path


def written(number: int) -> list[Record]:
    """Text with and without key, a tombstone, headers; offsets count from 0 in each batch."""
    time, headers = TIME_MS + 10 * number, ((f"h{number}", b"x"), ("none", None))
    return [
        Record(0, time, b"key-%d" % number, f"größe {number} ".encode() * 20, headers),
        Record(1, time + 1, None, b"no key %d" % number, ()),
        Record(2, time + 2, b"gone-%d" % number, None, ()),
    ]


def append(
    log: Log,
    records: list[Record],
    *,
    codec: Compression,
    sequence: int,
    producer_id: int = PRODUCER,
) -> None:
    data = encode_batch(
        records,
        compression=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
        is_transactional=producer_id >= 0,
    )
    log.append_from_client(
        bytearray(data), leader_epoch=min(sequence // 30, 3) if sequence >= 0 else 3
    )


def commit(log: Log) -> None:
    """The marker of a transaction coordinator."""
    key, value = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 5)
    marker = encode_batch(
        [Record(0, TIME_MS + 10 * BATCHES, key, value, ())],
        producer_id=PRODUCER,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    log.append(bytearray(marker), leader_epoch=3)


# -- Kafka's tool and ours


def java() -> str:
    home = os.environ.get("JAVA_HOME", "")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    found = found or shutil.which("java")
    assert found, "KAFKA_LIBS is set, but there is no java on PATH and none in JAVA_HOME"
    return found


def kafka_dump(files: list[Path], *options: str) -> str:
    """What Kafka's tool prints, complaints included: these go to the error stream."""
    assert list(Path(LIBS).glob("kafka-clients-*.jar")), f"KAFKA_LIBS={LIBS} holds no Kafka"
    named = ["--files", ",".join(map(str, files))]
    done = None
    for tool in TOOLS:
        command = [java(), "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"]
        command += ["-Xmx256m", "-cp", f"{LIBS}/*", tool, *options, *named]
        done = subprocess.run(command, capture_output=True, check=False)
        if b"ClassNotFoundException" not in done.stderr:
            break
    assert done is not None
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, output
    return output


def our_dump(
    files: list[Path], capsys: pytest.CaptureFixture[str], *options: str
) -> list[dict[str, object]]:
    assert main(["-o", "json", *options, *map(str, files)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def of_type(shown: list[dict[str, object]], *types: str) -> list[dict[str, object]]:
    return [each for each in shown if each["type"] in types]


def fields_of(line: str) -> dict[str, str]:
    """`name: value` pairs of a line."""
    return dict(re.findall(r"(\w+): (\S+)", line))


def lines(output: str, start: str) -> list[dict[str, str]]:
    return [fields_of(line) for line in output.splitlines() if line.startswith(start)]


_RECORD = re.compile(
    r"\| offset: (\d+) (?:CreateTime|LogAppendTime): (\d+) keySize: (-?\d+) valueSize: (-?\d+)"
    r".*? headerKeys: \[(.*?)\](?: key: (.*?))?(?: payload: (.*))?"
)


def kafka_records(output: str) -> list[Dumped]:
    found = []
    for line in output.splitlines():
        match = _RECORD.fullmatch(line)
        if match:
            offset, time, _, _, headers, key, value = match.groups()
            names = tuple(headers.split(",")) if headers else ()
            found.append(Dumped(int(offset), int(time), key, value, names))
    return found


def expected_records() -> list[Dumped]:
    found = []
    for number in range(BATCHES + 1):
        # The marker of the transaction lies before the last batch.
        base = 3 * number + (number == BATCHES)
        for record in written(number):
            key = None if record.key is None else record.key.decode()
            value = None if record.value is None else record.value.decode()
            names = tuple(name for name, _ in record.headers)
            found.append(Dumped(base + record.offset, record.timestamp, key, value, names))
    return found


def segment_files(directory: Path, suffix: str) -> list[Path]:
    found = sorted(directory.glob(f"*{suffix}"))
    assert len(found) > 1
    return found


def test_kafka_finds_every_record_of_every_codec(  # R27, R28
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = segment_files(directory, ".log")
    output = kafka_dump(logs, "--deep-iteration", "--print-data-log")
    data = [record for record in kafka_records(output) if record.offset != 3 * BATCHES]
    assert data == expected_records()
    assert f"| offset: {3 * BATCHES} " in output
    assert "endTxnMarker: COMMIT coordinatorEpoch: 5" in output
    ours = of_type(our_dump(logs, capsys, "--deep"), "batch")
    theirs = lines(output, "baseOffset: ")
    assert {each["compresscodec"] for each in theirs} == {
        codec.name.lower() for codec in Compression
    }
    assert all(each["isvalid"] == "true" for each in theirs)
    assert comparable(theirs) == comparable(ours)
    for log in logs:
        # Kafka 4.3's tool expects every file to begin with offset 0.
        artefact = f"Non-consecutive offsets in {log}\n  -1 is followed by {int(log.stem)}\n"
        output = output.replace(artefact, "")
    assert not COMPLAINTS.search(output), output


SAME_BATCH_FIELDS = (
    "baseOffset",
    "lastOffset",
    "count",
    "baseSequence",
    "lastSequence",
    "producerId",
    "producerEpoch",
    "partitionLeaderEpoch",
    "isTransactional",
    "isControl",
    "position",
    "size",
    "magic",
    "compresscodec",
    "crc",
    "isvalid",
)


def comparable(batches: list[dict[str, str]] | list[dict[str, object]]) -> list[list[str]]:
    return [[str(batch[name]).lower() for name in SAME_BATCH_FIELDS] for batch in batches]


def test_kafka_reads_the_indexes_as_we_do(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    indexes = segment_files(directory, ".index") + segment_files(directory, ".timeindex")
    output = kafka_dump(indexes)
    assert not COMPLAINTS.search(output), output
    ours = our_dump(indexes, capsys)
    for start, kind in (("offset: ", "offsetIndexEntry"), ("timestamp: ", "timeIndexEntry")):
        theirs = lines(output, start)
        assert theirs
        assert theirs == [
            {name: str(value) for name, value in each.items() if name not in ("type", "file")}
            for each in of_type(ours, kind)
        ]


def test_kafka_finds_the_indexes_sane(directory: Path) -> None:  # R29
    indexes = segment_files(directory, ".index") + segment_files(directory, ".timeindex")
    verified = kafka_dump(indexes, "--verify-index-only")
    assert not COMPLAINTS.search(verified), verified
    checked = kafka_dump(indexes, "--index-sanity-check")
    for index in indexes:
        verdict = "passed sanity check." if index.stat().st_size else "is empty."
        assert f"{index} {verdict}" in checked


def test_kafka_complains_where_there_is_reason_to(directory: Path, tmp_path: Path) -> None:
    """Else its silence above would mean nothing."""
    copy = tmp_path / "orders-0"
    shutil.copytree(directory, copy)
    index = segment_files(copy, ".index")[0]
    data = bytearray(index.read_bytes())
    data[3] -= 1  # the offset of the first entry
    index.write_bytes(data)
    assert COMPLAINTS.search(kafka_dump([index], "--verify-index-only"))
    assert main(["--verify", str(index)]) == 1


def test_kafka_reads_the_producer_snapshots(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots = segment_files(directory, ".snapshot")
    theirs = lines(kafka_dump(snapshots), "producerId: ")
    ours = of_type(our_dump(snapshots, capsys), "producer")
    assert len(theirs) == len(ours) == len(snapshots)
    same = ["producerId", "producerEpoch", "coordinatorEpoch", "lastTimestamp"]
    same += ["lastSequence", "lastOffset", "offsetDelta"]
    for kafka, own, path in zip(theirs, ours, snapshots, strict=True):
        assert [kafka[name] for name in same] == [str(own[name]) for name in same]
        is_committed = int(path.stem) > 3 * BATCHES
        expected = "OptionalLong.empty" if is_committed else "OptionalLong[0]"
        assert kafka["currentTxnFirstOffset"] == expected
        assert own["currentTxnFirstOffset"] == (-1 if is_committed else 0)
