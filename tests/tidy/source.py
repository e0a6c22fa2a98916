"""The files that tidiness is about: what git tracks or would track."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "kraftlog",
    "storage",
    "metadata_log",
    "quorum",
    "brokers",
    "spark_connector",
    "chaos",
    "kraftctl",
)
SOURCE_SUFFIXES = (".py", ".pyi", ".c", ".h", ".proto", ".toml", "Makefile", ".ci/run")
LEFT_OVERS = {".git", ".venv", ".hypothesis", "__pycache__", "build", "dist"}

_GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")


def files(root: Path = ROOT) -> list[str]:
    """Every file of the repository, as a path from its root."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others"]
    try:
        answer = subprocess.run(
            [*command, "--exclude-standard"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return _walk(root)  # an unpacked archive
    return sorted(path for path in answer.stdout.split("\0") if (root / path).is_file())


def _walk(root: Path) -> list[str]:
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if not _is_left_over(path))


def _is_left_over(path: Path) -> bool:
    names = path.parts[:-1]
    return any(name in LEFT_OVERS or name.endswith((".egg-info", "_cache")) for name in names)


def is_generated(path: str) -> bool:
    return _GENERATED.search(path) is not None


def texts(paths: list[str], root: Path = ROOT) -> dict[str, str]:
    """The contents of those files that are text."""
    found = {}
    for path in paths:
        try:
            found[path] = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


def written_sources(root: Path = ROOT) -> dict[str, str]:
    """Path and text of everything written by hand for a machine to read."""
    paths = [path for path in files(root) if path.endswith(SOURCE_SUFFIXES)]
    return texts([path for path in paths if not is_generated(path)], root)
