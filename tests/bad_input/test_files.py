"""Every small file that we read, when it is cut, flipped, too long or another's: it is read, or
refused by name. Nothing else comes out of it: no other exception, and no change of the file.
"""

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.checkers.logs import read_log
from chaos.history import HistoryWriter, read_history
from chaos.live import leftovers
from chaos.live.run_directory import META, RESULTS, RunDirectory
from chaos.report.run import read_run
from kraftlog.config import load as load_config
from kraftlog.config_key import Scope
from kraftlog.errors import KraftError
from kraftlog.local import layout
from kraftlog.resolver import RESOLVE_VARIABLE, resolver
from kraftlog.types import TopicPartition, Uuid
from quorum.core.messages import ReplicaKey, SnapshotId
from quorum.core.state import ElectionState
from quorum.election_file import ELECTION_FILE, read_election, write_election
from quorum.snapshot_file import open_snapshot, snapshot_name, write_snapshot
from storage.checkpoint import (
    CLEAN_SHUTDOWN_FILE,
    PARTITION_METADATA_FILE,
    read_clean_shutdown,
    read_offsets,
    read_partition_metadata,
    write_clean_shutdown,
    write_offsets,
    write_partition_metadata,
)
from storage.damage import StateDamaged
from storage.epoch_cache import EpochCache
from storage.files import OsFiles
from storage.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from storage.producer_state import ProducerEntry, decode_snapshot, encode_snapshot
from tests.quorum.samples import voters
from tests.storage.logs import batch

FILES = OsFiles()
ID = Uuid(bytes(range(16)))
SNAPSHOT = SnapshotId(7, 2)
OFFSETS = "recovery-point-offset-checkpoint"
PRODUCER = ProducerEntry(7, 0, 5, 5, 0, 1, -1, -1)
SEGMENT = f"{0:020}.log"
DEEP = b"[" * 100_000 + b"]" * 100_000


@dataclass(frozen=True)
class Kind:
    """A file by its name in a directory: how a good one is written, and how it is read."""

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]


def write_history(directory: Path) -> None:
    with HistoryWriter(directory / "history.jsonl") as history:
        history.event("phase", phase="warm")
        sent = history.invoke("p", "send", {"topic": "t", "partition": 0, "value": 1})
        history.ok(sent, {"offset": 0})


def write_run(directory: Path) -> None:
    (directory / META).write_text(json.dumps({"drill": "d", "seed": 1}))
    (directory / RESULTS).write_text(json.dumps({"drill": "d", "verdict": "PASS", "criteria": []}))


def write_cluster(directory: Path) -> None:
    made = layout.Layout(str(directory), [], {"a": "b"}, "fast", str(ID))
    made.members.append(layout.Member("c1", layout.CONTROLLER, 101, 19_000))
    made.save()


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


def inside(name: str, write: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda directory: write(directory / name)


KINDS = [
    Kind(
        META_PROPERTIES_FILE,
        lambda directory: write_meta_properties(
            FILES, str(directory), MetaProperties.of(cluster_id="c", directory_id=ID, node_id=1)
        ),
        lambda directory: read_meta_properties(FILES, str(directory)),
    ),
    Kind(
        ELECTION_FILE,
        lambda directory: write_election(
            FILES, str(directory / ELECTION_FILE), ElectionState(3, ReplicaKey(1, ID), 1)
        ),
        lambda directory: read_election(FILES, str(directory / ELECTION_FILE)),
    ),
    Kind(
        PARTITION_METADATA_FILE,
        lambda directory: write_partition_metadata(FILES, str(directory), ID),
        lambda directory: read_partition_metadata(FILES, str(directory)),
    ),
    Kind(
        CLEAN_SHUTDOWN_FILE,
        lambda directory: write_clean_shutdown(FILES, str(directory), 7),
        lambda directory: read_clean_shutdown(FILES, str(directory)),
    ),
    Kind(
        OFFSETS,
        lambda directory: write_offsets(
            FILES, str(directory / OFFSETS), {TopicPartition("t", 0): 5, TopicPartition("u", 1): 6}
        ),
        lambda directory: read_offsets(FILES, str(directory / OFFSETS)),
    ),
    Kind(
        "leader-epoch-checkpoint",
        inside("leader-epoch-checkpoint", text("0\n2\n0 0\n3 17\n")),
        lambda directory: EpochCache(FILES, str(directory / "leader-epoch-checkpoint")).load(),
    ),
    Kind(
        "producers.snapshot",
        inside("producers.snapshot", lambda path: path.write_bytes(encode_snapshot([PRODUCER]))),
        lambda directory: decode_snapshot((directory / "producers.snapshot").read_bytes(), "p"),
    ),
    Kind(
        snapshot_name(SNAPSHOT),
        lambda directory: write_snapshot(
            FILES, str(directory), SNAPSHOT, voters(1), [b"a", b"b"], timestamp=1
        ),
        lambda directory: open_snapshot(FILES, str(directory / snapshot_name(SNAPSHOT)), SNAPSHOT),
    ),
    Kind(
        SEGMENT,
        inside(SEGMENT, lambda path: path.write_bytes(bytes(batch(b"a")))),
        lambda directory: read_log("b1", directory, with_values=True),
    ),
    Kind(layout.FILE, write_cluster, lambda directory: layout.load(str(directory))),
    Kind(
        "resolve.json",
        inside("resolve.json", text('{"127.0.0.1:9101": "127.0.0.1:40311"}')),
        lambda directory: resolver({RESOLVE_VARIABLE: str(directory / "resolve.json")})("a:1"),
    ),
    Kind(
        "server.toml",
        inside("server.toml", text('listeners = "127.0.0.1:9092"\nlog.segment.bytes = 1048576\n')),
        lambda directory: load_config(Scope.BROKER, file=str(directory / "server.toml")),
    ),
    Kind(
        "history.jsonl", write_history, lambda directory: read_history(directory / "history.jsonl")
    ),
    Kind(META, write_run, lambda directory: RunDirectory(directory).read(META)),
    Kind(RESULTS, write_run, read_run),
    Kind(
        leftovers.PIDS_FILE,
        inside(leftovers.PIDS_FILE, text("[[4194304, 5]]")),
        lambda directory: leftovers.find(str(directory)),
    ),
]
BY_NAME: Mapping[str, Kind] = {each.name: each for each in KINDS}


def expect_read_or_refused(kind: Kind, directory: Path, content: bytes) -> None:
    path = directory / kind.name
    path.write_bytes(content)
    with contextlib.suppress(KraftError, StateDamaged):  # that is rebuilt, and nobody hears of it
        kind.read(directory)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", BY_NAME)
def test_a_good_one_is_read(tmp_path: Path, name: str) -> None:
    kind = BY_NAME[name]
    kind.write(tmp_path)
    kind.read(tmp_path)


@pytest.mark.parametrize("name", BY_NAME)
def test_cut_at_every_byte(tmp_path: Path, name: str) -> None:
    BY_NAME[name].write(tmp_path)
    whole = (tmp_path / name).read_bytes()
    for length in range(len(whole)):
        expect_read_or_refused(BY_NAME[name], tmp_path, whole[:length])


@pytest.mark.parametrize("name", BY_NAME)
def test_any_bytes_in_any_place(name: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        BY_NAME[name].write(directory)
        whole = (directory / name).read_bytes()

        @given(st.integers(0, len(whole)), st.integers(0, 20), st.binary(max_size=20))
        def one(at: int, removed: int, put: bytes) -> None:
            damaged = whole[:at] + put + whole[at + removed :]
            expect_read_or_refused(BY_NAME[name], directory, damaged)

        one()


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf{}",
        b"{}\r\n",
        b"null",
        b"[]",
        b"{" * 10,
        DEEP,
        b"\0" * 5_000,
        b"\xff" * 100,
        b"9" * 10_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_something_else(tmp_path: Path, name: str, content: bytes) -> None:
    BY_NAME[name].write(tmp_path)
    expect_read_or_refused(BY_NAME[name], tmp_path, content)


@pytest.mark.parametrize("name", BY_NAME)
def test_that_of_another_kind(tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    BY_NAME[name].write(mine)
    for number, other in enumerate(KINDS):
        directory = tmp_path / str(number)
        directory.mkdir()
        other.write(directory)
        expect_read_or_refused(BY_NAME[name], mine, (directory / other.name).read_bytes())
