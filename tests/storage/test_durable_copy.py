"""The copy of what is durable, against the model disk that keeps nothing else."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.drill_hooks import DURABLE
from storage.durable_copy import CopiedFiles, DurableCopy, server_files
from storage.files import Files, OsFiles
from storage.model_disk import ModelDisk
from storage.model_inode import DirNode

NAMES = st.sampled_from(["a", "b", "c"])
WRITES = st.tuples(st.just("write"), NAMES, st.integers(0, 9), st.binary(min_size=1, max_size=5))
CUTS = st.tuples(st.just("truncate"), NAMES, st.integers(0, 12))
OTHERS = st.tuples(
    st.sampled_from(["sync", "remove", "sync_dir", "rename", "atomic", "subdir"]), NAMES, NAMES
)


class Server:
    """One with a directory that was there before it, and its copy."""

    def __init__(self, place: Path) -> None:
        self.root, self.durable = place / "data", place / DURABLE
        self.root.mkdir()
        self.durable.mkdir()
        (self.root / "old").write_bytes(b"there before")
        self.files = CopiedFiles(DurableCopy(str(self.durable), [str(self.root)]))

    def remains(self) -> dict[str, bytes]:
        return tree(self.durable / "root-0")


def tree(root: Path) -> dict[str, bytes]:
    """Every file by its path, and every directory with nothing in it."""
    found: dict[str, bytes] = {}
    for path, directories, names in os.walk(root, followlinks=True):
        below = os.path.relpath(path, root)
        found.update({f"{below}/{each}/": b"" for each in directories})
        found.update({f"{below}/{each}": Path(path, each).read_bytes() for each in names})
    return found


def model_tree(root: DirNode, *, durable: bool = False, below: str = ".") -> dict[str, bytes]:
    """The same of a model: all that it holds, or what is certain to survive."""
    found: dict[str, bytes] = {}
    for name, node in (root.durable if durable else root.names).items():
        path = f"{below}/{name}"
        if isinstance(node, DirNode):
            inner = path.removeprefix("./")
            found |= {f"{path}/": b"", **model_tree(node, durable=durable, below=inner)}
        else:
            found[path] = bytes(node.durable if durable else node.content)
    return found


def perform(files: Files, root: str, step: tuple[object, ...]) -> None:
    kind, name, *rest = step
    path = f"{root}/{name}"
    if kind in ("write", "truncate", "sync"):
        file = files.open(path, create=True)
        if kind == "write":
            position, data = rest
            assert isinstance(position, int)
            assert isinstance(data, bytes)
            file.pwrite([data], position)
        elif kind == "truncate":
            assert isinstance(rest[0], int)
            file.truncate(rest[0])
        else:
            file.sync()
        file.close()
    elif kind == "sync_dir":
        files.sync_dir(root)
    elif kind == "subdir":
        files.make_dir(f"{root}/sub")
        files.write_atomic(f"{root}/sub/{name}", b"inner")
    elif kind == "atomic":
        files.write_atomic(path, b"whole", durable=name != rest[0])
    elif files.exists(path):
        files.remove(path) if kind == "remove" else files.rename(path, f"{root}/{rest[0]}")


@given(steps=st.lists(WRITES | CUTS | OTHERS, max_size=30))
def test_it_holds_what_a_model_of_the_disk_calls_durable(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    server = Server(tmp_path_factory.mktemp("node"))
    disk = ModelDisk()
    disk.make_dir("/data")
    disk.write_atomic("/data/old", b"there before")
    disk.sync_dir("/")
    for step in steps:
        perform(server.files, str(server.root), step)
        perform(disk, "/data", step)
    model = disk._root.names["data"]
    assert isinstance(model, DirNode)
    assert server.remains() == model_tree(model, durable=True)
    assert tree(server.root) == model_tree(model)


def test_bytes_count_once_their_sync_has_returned_and_names_once_their_directory_has(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path)
    log = server.files.open(str(server.root / "log"), create=True)
    log.pwrite([b"one"], 0)
    log.sync()
    assert server.remains() == {"./old": b"there before"}
    server.files.sync_dir(str(server.root))
    log.pwrite([b"two"], 3)
    assert server.remains() == {"./old": b"there before", "./log": b"one"}
    log.sync()
    log.truncate(1)
    server.files.remove(str(server.root / "old"))
    assert server.remains() == {"./old": b"there before", "./log": b"onetwo"}
    log.close()


def test_a_sync_without_news_waits_for_the_one_that_has_them(tmp_path: Path) -> None:
    """It returns only when all that was written before it is durable, as fdatasync does."""
    server = Server(tmp_path)
    files = [server.files.open(str(server.root / "old")) for _ in range(8)]
    seen: list[bool] = []

    def work(number: int) -> None:
        for step in range(20):
            data = b"%d-%02d" % (number, step)
            files[number].pwrite([data], 100 + 10 * number)
            files[number].sync()
            copied = (server.durable / "root-0" / "old").read_bytes()
            seen.append(copied[100 + 10 * number :].startswith(data))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 160


def test_it_is_made_only_where_a_drill_asks_for_it(tmp_path: Path) -> None:
    hooks, data = tmp_path / "hooks", tmp_path / "data"
    hooks.mkdir()
    kinds: list[Callable[[], Files]] = [
        lambda: server_files(None, str(data)),
        lambda: server_files(str(hooks), str(data)),
    ]
    assert [type(make()) for make in kinds] == [OsFiles, OsFiles]
    (hooks / DURABLE).mkdir()
    first = server_files(str(hooks), str(data))
    assert isinstance(first, CopiedFiles)
    first.write_atomic(str(data / "a"), b"1")
    second = server_files(str(hooks), str(data))  # a restart begins anew
    second.write_atomic(str(data / "b"), b"2", durable=False)
    assert tree(hooks / DURABLE / "root-0") == {"./a": b"1"}
