"""The command: what it prints and how it ends, in the process and as a process of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlog import _codec
from kraftlog._codec import CHOICE_VARIABLE
from kraftlog.record_batch import encode_values
from kraftlog.types import Compression
from storage.dump import main
from storage.files import OsFiles
from storage.model_disk import ModelDisk
from tests.storage.dumps import FIRST, SECOND, cut, flip, position_of, write_log
from tests.storage.logs import batch, opened

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "storage.dump"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path)


# The twin in use is named, so that it is not missed on stderr where the native one was not built.
ENVIRONMENT = os.environ | {CHOICE_VARIABLE: _codec.codec.NAME}


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


def started(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def snapshot(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


# -- what it prints


def test_a_directory_as_a_table(log: Path) -> None:  # R28
    done = run("--deep", log)
    assert (done.returncode, done.stderr) == (0, "")
    for number in range(15):
        assert f'value="value {number}"' in done.stdout
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f" {codec} " in done.stdout
    assert done.stdout.splitlines()[-1] == ("files 10, damage 0, unread 0, incomplete 0, note 0")


def test_json_is_one_object_per_line(log: Path) -> None:  # R28
    done = run("-o", "json", "--deep", log)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    records = [each for each in found if each["type"] == "record"]
    assert [record["offset"] for record in records] == list(range(30))
    assert [record["value"] for record in records[::2]] == [f"value {n}" for n in range(15)]
    assert {each["type"] for each in found} >= {
        "file",
        "batch",
        "offsetIndexEntry",
        "timeIndexEntry",
        "producer",
        "epoch",
        "recoveryPoint",
        "fileEnd",
    }
    assert found[-1] == {
        "type": "summary",
        "files": 10,
        "damage": 0,
        "unread": 0,
        "incomplete": 0,
        "note": 0,
    }


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_stays_on_disk_as_the_producer_made_it(  # R27
    tmp_path: Path, codec: Compression, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "orders-0"
    sent = bytes(batch(b"value " * 50, compression=codec, producer=(7, 0, 0)))
    log = opened(OsFiles(), str(directory))
    log.append(batch(b"before"), leader_epoch=4)
    log.append_from_client(bytearray(sent), leader_epoch=4)
    log.close()
    path = directory / f"{FIRST}.log"
    assert main(["-o", "json", str(path)]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [each for each in shown if each["type"] == "batch"][-1]
    assert found["compresscodec"] == codec.name.lower()
    stored = path.read_bytes()[found["position"] :][: found["size"]]
    # The broker sets offset and leader epoch, which are not under the CRC, and nothing else.
    assert (stored[8:12], stored[16:]) == (sent[8:12], sent[16:])
    assert (found["baseOffset"], found["partitionLeaderEpoch"]) == (1, 4)


def test_verify_lists_files_not_batches(log: Path) -> None:
    done = run("--verify", "--deep", log)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 11
    assert all(line.startswith("ok ") for line in lines[:-1])


def test_a_range_of_offsets(log: Path) -> None:
    done = run("-o", "json", "--deep", "--offsets", "5:8", log / f"{FIRST}.log")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["offset"] for each in found if each["type"] == "record"] == [5, 6, 7]
    done = run("-o", "json", "--offsets", "22", log / f"{FIRST}.log")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["baseOffset"] for each in found if each["type"] == "batch"] == [22]


def test_nothing_is_changed(log: Path) -> None:
    flip(log / f"{FIRST}.log", 70)
    cut(log / f"{SECOND}.index", 3)
    before = snapshot(log)
    assert run("--verify", "--deep", log).returncode == 1
    assert snapshot(log) == before


# -- damage


def test_damage_is_located_and_the_rest_is_shown(log: Path) -> None:
    path = log / f"{FIRST}.log"
    at, after = position_of(path, 3), position_of(path, 4)
    flip(path, after - 1)
    done = run("-o", "json", "--deep", log)
    assert done.returncode == 1
    found = [json.loads(line) for line in done.stdout.splitlines()]
    (finding,) = [each for each in found if each["type"] == "finding"]
    assert finding["file"] == str(path)
    assert (finding["position"], finding["offset"]) == (at, 6)
    assert (finding["bytesSkipped"], finding["resumedAt"]) == (after - at, after)
    records = [each["offset"] for each in found if each["type"] == "record"]
    assert records == [n for n in range(30) if n not in (6, 7)]


@pytest.mark.parametrize(
    "name",
    [
        f"{FIRST}.log",
        f"{FIRST}.index",
        f"{FIRST}.timeindex",
        f"{SECOND}.snapshot",
        "leader-epoch-checkpoint",
        "recovery-point",
    ],
)
@pytest.mark.parametrize("how", ["flipped", "cut", "garbage"])
def test_every_damaged_file_is_found_by_verify(log: Path, name: str, how: str) -> None:
    path = log / name
    if how == "flipped":
        flip(path, 3)
    elif how == "cut":
        cut(path, 1)
    else:
        path.write_bytes(bytes(range(256)) * 2)
    assert main(["--verify", str(log)]) == 1


def test_damage_reads_well(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log / f"{SECOND}.log"
    at = position_of(path, 2)
    cut(path, 1)
    assert main(["--verify", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"DAMAGE: {path}: byte {at}, offset 28: the file ends inside a batch" in out
    assert "  hint: restore the file" in out
    assert f"damaged  {path}" in out


# -- how it ends


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "required: PATH"),
        (["--offsets", "x", "p"], "'x' is not FROM or FROM:TO"),
        (["--offsets", "9:9", "p"], "'9:9' is empty"),
        (["-o", "xml", "p"], "invalid choice: 'xml'"),
    ],
)
def test_wrong_usage(arguments: list[str], what: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert what in done.stderr
    assert done.stdout == ""


def test_a_missing_path_and_a_strange_one_are_named_with_a_hint(tmp_path: Path) -> None:
    strange = tmp_path / "notes.txt"
    strange.write_text("hello")
    done = run(tmp_path / "missing.log", strange)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"storage.dump: {tmp_path}/missing.log: there is no such file" in done.stderr
    assert f"storage.dump: {strange}: this is not the name of a log's file" in done.stderr
    assert done.stderr.count("hint: ") == 2
    assert "Traceback" not in done.stderr


def test_a_bad_path_does_not_keep_the_others_and_damage_counts_more(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing, path = str(log / "missing"), log / f"{FIRST}.log"
    assert main(["--verify", missing, str(path)]) == 2
    assert f"ok       {path}" in capsys.readouterr().out
    flip(path, 70)
    assert main(["--verify", missing, str(path)]) == 1


def test_it_reads_whatever_files_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    disk = ModelDisk()
    data = encode_values([b"on a model disk"], timestamp=1, base_offset=0)
    disk.open(f"/{FIRST}.log", create=True).pwrite([data], 0)
    assert main(["--deep", f"/{FIRST}.log"], disk) == 0
    assert "on a model disk" in capsys.readouterr().out


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    """More than a pipe takes before somebody reads."""
    path = tmp_path / f"{FIRST}.log"
    batches = [encode_values([b"x"], timestamp=1, base_offset=n) for n in range(20_000)]
    path.write_bytes(b"".join(batches))
    return path


def test_a_reader_that_has_seen_enough_ends_it_quietly(long_log: Path) -> None:
    process = started(long_log)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"== ")
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == -signal.SIGPIPE
    assert errors == b""


def test_an_interrupt_ends_it_without_a_traceback(long_log: Path) -> None:
    process = started(long_log)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors == b""


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(encode_values(["größe".encode()], timestamp=1, base_offset=0))
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*COMMAND, "--deep", str(path)], cwd=ROOT, capture_output=True, env=environment, check=False
    )
    assert done.returncode == 0
    assert rb"gr\xf6\xdfe" in done.stdout
