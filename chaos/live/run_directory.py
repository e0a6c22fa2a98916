"""The directory of one run of a drill.

meta.json       what was run: drill, seed, profile, backend, versions
history.jsonl   what clients did and saw, and what happened meanwhile
results.json    verdict and criteria
report.html     the same for people, junit.xml for machines
cluster/        data and logs of the nodes; the data goes if the drill has passed
"""

import json
import os
import platform
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from chaos.history import Json
from chaos.live import leftovers
from kraftlog.errors import ConfigError

META = "meta.json"
HISTORY = "history.jsonl"
RESULTS = "results.json"
CLUSTER = "cluster"
PACKAGES = ("kraftlog", "grpcio", "protobuf")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    path: Path

    @classmethod
    def create(cls, root: str | Path, drill: str, seed: int) -> "RunDirectory":
        """A new one: its name, drill, seed and a bit of chance, is the id of the run."""
        path = Path(root).resolve() / f"{drill}-{seed}-{secrets.token_hex(3)}"
        path.mkdir(parents=True)
        return cls(path)

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def history(self) -> Path:
        return self.path / HISTORY

    @property
    def cluster(self) -> Path:
        return self.path / CLUSTER

    def write(self, name: str, document: Mapping[str, Json]) -> None:
        temporary = self.path / f"{name}.tmp"
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, self.path / name)

    def read(self, name: str) -> Mapping[str, Json]:
        path = self.path / name
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(
                f"{self.path} is no run of a drill: it has no {name}",
                hint="give the directory that `kraftctl drill run` named",
            ) from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is no JSON: {error}", hint="run the drill again") from None
        if not isinstance(found, dict):
            raise ConfigError(f"{path} is no JSON object", hint="run the drill again")
        return found

    def write_meta(self, facts: Mapping[str, Json]) -> None:
        """What is needed to run it again, and to know later what was run."""
        pid = os.getpid()
        self.write(
            META,
            {
                "run_id": self.run_id,
                "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "commit": _commit(),
                "versions": _versions(),
                "harness": [pid, leftovers.start_time(pid)],
                **facts,
            },
        )

    def is_running(self) -> bool:
        """Whether the harness that made it is still there."""
        match self.read(META).get("harness"):
            case [int(pid), int(started)]:
                return leftovers.is_alive(pid, started)
            case _:
                return False

    def drop_data(self) -> None:
        """The data of the nodes; their logs and all else stay."""
        if not self.cluster.is_dir():
            return
        for path in self.cluster.iterdir():
            if path.is_dir() and path.name != "resolve":
                shutil.rmtree(path, ignore_errors=True)


def runs_in(root: str | Path) -> Sequence[RunDirectory]:
    """All runs below a directory, by name."""
    root = Path(root).resolve()
    found = sorted(path.parent for path in root.glob(f"*/{META}")) if root.is_dir() else []
    return [RunDirectory(path) for path in found]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "kernel": platform.release()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _commit() -> str:
    """Of the sources, where they lie in a repository."""
    here = Path(__file__).parent
    try:
        answer = subprocess.run(  # noqa: S603 - git, of this very place
            ["git", "-C", str(here), "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except OSError:
        return ""
    return answer.stdout.strip()
