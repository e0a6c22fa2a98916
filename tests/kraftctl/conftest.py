"""One small cluster for all tests of commands that ask one; each uses topics of its own."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pytest
from click.testing import CliRunner

from kraftctl.cli import main
from kraftlog.local import LocalCluster

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def data(self) -> object:
        """What the JSON document of the command has."""
        document = json.loads(self.out)
        assert document["schema"] == 1
        found: object = document["data"]
        return found

    @property
    def warnings(self) -> object:
        found: object = json.loads(self.out)["warnings"]
        return found

    def pick(self, *path: str | int) -> object:
        """One thing inside of it."""
        found = self.data
        for step in path:
            assert isinstance(found, dict | list)
            found = found[step]  # type: ignore[index] # a name of a dict, a place in a list
        return found


class Run(Protocol):
    def __call__(self, *arguments: str, stdin: str = "") -> Ran: ...


def invoke(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Ran:
    result = CliRunner().invoke(main, arguments, input=stdin, env=env, prog_name="kraftctl")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that use the cluster run in one process, so that there is one cluster."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()) and "kraftctl" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("kraftctl"))


@pytest.fixture(scope="session", autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes what its user has."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(1, 2) as started:
        yield started


@pytest.fixture
def kraftctl(cluster: LocalCluster) -> Run:
    """Runs a command against the cluster."""

    def run(*arguments: str, stdin: str = "") -> Ran:
        return invoke(*arguments, "-b", cluster.bootstrap, stdin=stdin)

    return run


@pytest.fixture
def topic(kraftctl: Run) -> str:
    """A topic with two partitions on both brokers."""
    name = f"topic-{next(_NUMBERS)}"
    assert kraftctl("topic", "create", name, "-p", "2", "-r", "2").code == 0
    return name
