"""Which files count."""

import subprocess
from pathlib import Path

from tests.tidy import source


def plant(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x = 1\n")


def test_new_files_count_and_ignored_ones_do_not(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    plant(tmp_path, "a.py", "build/b.py")
    (tmp_path / ".gitignore").write_text("build/\n")
    assert source.files(tmp_path) == [".gitignore", "a.py"]


def test_an_unpacked_archive_is_walked(tmp_path: Path) -> None:
    plant(tmp_path, "a.py", "x/b.py", "x/__pycache__/c.py", ".venv/d.py", ".mypy_cache/e.py")
    assert source.files(tmp_path) == ["a.py", "x/b.py"]


def test_generated_and_binary_files_are_not_written_sources(tmp_path: Path) -> None:
    plant(tmp_path, "a.py", "a_pb2.py", "a_pb2.pyi", "a_pb2_grpc.py", "Makefile", "notes.txt")
    (tmp_path / "b.py").write_bytes(b"\xff")
    assert sorted(source.written_sources(tmp_path)) == ["Makefile", "a.py"]
