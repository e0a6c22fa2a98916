"""Fixtures for pytest: a real cluster, without a JVM and without Docker.

    def test_orders(kraft_topic, kraft_producer, kraft_consumer):
        kraft_producer.send(kraft_topic, b"one").result(10)
        assert next(iter(kraft_consumer)).value == b"one"

    @pytest.mark.kraft(controllers=3, brokers=3, faults=True, config={"min.insync.replicas": 2})
    def test_failover(kraft_cluster):
        kraft_cluster.kill(kraft_cluster.leader("orders", 0))
        kraft_cluster.wait_healthy("10s")

Tests share a cluster with all others that ask for the same one; each gets topics of its own, and
none may break it. With `faults` a test gets a cluster for itself, which it may break: `kill`,
`pause`, `partition`, `isolate`, `heal`. Under xdist every worker has its own.
When a test fails, the end of each node's log is part of the report; with --kraft-keep the data of
its cluster stays, and the report says where.

Nothing is imported or started before a test asks for it.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kraftlog.consumer import Consumer
    from kraftlog.local import LocalCluster
    from kraftlog.producer import Producer

LOG_LINES = 40
TOPIC_CHARS_MAX = 60

_topic_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a test asks for with its marker."""

    controllers: int = 1
    brokers: int = 1
    faults: bool = False
    partitions: int = 1
    config: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """Tests with the same one may share a cluster."""
        return self.controllers, self.brokers, tuple(sorted(self.config.items()))


def wish_of(item: pytest.Item) -> Wish:
    marker = item.get_closest_marker("kraft")
    if marker is None:
        return Wish()
    if marker.args:
        raise pytest.UsageError("mark.kraft takes names: controllers=, brokers=, faults=, config=")
    try:
        return Wish(**marker.kwargs)
    except TypeError as error:
        raise pytest.UsageError(f"mark.kraft: {error}") from None


class Clusters:
    """The clusters of a test session, by what was asked for."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._shared: dict[tuple[object, ...], LocalCluster] = {}
        self._failed: set[str] = set()
        """Directories whose data is wanted."""

    def get(self, wish: Wish) -> "LocalCluster":
        known = self._shared.get(wish.key)
        if known is None:
            known = self._shared[wish.key] = self.start(wish)
        return known

    def start(self, wish: Wish) -> "LocalCluster":
        from kraftlog.local import LocalCluster  # noqa: PLC0415 - only who asks pays for it
        from kraftlog.testing.shared import SharedCluster  # noqa: PLC0415

        kind = LocalCluster if wish.faults else SharedCluster
        return kind(
            wish.controllers,
            wish.brokers,
            data=tempfile.mkdtemp(prefix="kraftlog-test-"),
            config=wish.config,
            faults=wish.faults,
        ).start()

    def note_failure(self, cluster: "LocalCluster") -> None:
        """A test with this cluster has failed."""
        if self._keep:
            self._failed.add(cluster.directory)

    def end(self, cluster: "LocalCluster") -> None:
        directory = cluster.directory
        cluster.close()
        if directory not in self._failed:
            shutil.rmtree(directory, ignore_errors=True)

    def end_all(self) -> None:
        while self._shared:
            self.end(self._shared.popitem()[1])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("kraftlog").addoption(
        "--kraft-keep", action="store_true", help="keep the data of clusters in which a test failed"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kraft(controllers=1, brokers=1, faults=False, partitions=1, config={}): the kraftlog"
        " cluster that a test wants",
    )


@pytest.fixture(scope="session")
def _kraft_clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    clusters = Clusters(keep=bool(request.config.getoption("--kraft-keep")))
    yield clusters
    clusters.end_all()


@pytest.fixture
def kraft_cluster(
    request: pytest.FixtureRequest, _kraft_clusters: Clusters
) -> "Iterator[LocalCluster]":
    """The cluster that the test's marker asks for; by default one controller and one broker."""
    item: pytest.Item = request.node
    wish = wish_of(item)
    cluster = _kraft_clusters.start(wish) if wish.faults else _kraft_clusters.get(wish)
    item.stash[_CLUSTER] = cluster
    yield cluster
    if item.stash.get(_FAILED, False):
        _kraft_clusters.note_failure(cluster)
    if wish.faults:
        _kraft_clusters.end(cluster)


@pytest.fixture
def kraft_topic(request: pytest.FixtureRequest, kraft_cluster: "LocalCluster") -> str:
    """A topic that no other test has, named after this one."""
    from kraftlog.admin_types import NewTopic  # noqa: PLC0415

    item: pytest.Item = request.node
    words = re.sub(r"[^A-Za-z0-9]+", "-", item.name).strip("-")[:TOPIC_CHARS_MAX]
    name = f"{words}-{os.getpid()}-{next(_topic_numbers)}"
    wish = wish_of(item)
    with kraft_cluster.admin() as admin:
        factor = min(3, wish.brokers)
        admin.create_topics([NewTopic(name, wish.partitions, factor)]).raise_for_errors()
    kraft_cluster.wait_topic(name)
    return name


@pytest.fixture
def kraft_producer(kraft_cluster: "LocalCluster") -> "Iterator[Producer[bytes, bytes]]":
    """A producer of bytes."""
    with kraft_cluster.producer() as producer:
        yield producer


@pytest.fixture
def kraft_consumer(
    kraft_cluster: "LocalCluster", kraft_topic: str
) -> "Iterator[Consumer[bytes, bytes]]":
    """A consumer of the test's topic, from its beginning."""
    with kraft_cluster.consumer(kraft_topic, offset_reset="earliest") as consumer:
        yield consumer


# -- reports

_CLUSTER: "pytest.StashKey[LocalCluster]" = pytest.StashKey()
_FAILED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of each node's log with a failure."""
    report = yield
    cluster = item.stash.get(_CLUSTER, None)
    if report.failed and cluster is not None:
        item.stash[_FAILED] = True
        report.sections.append(("kraftlog cluster", _story(cluster, item)))
    return report


def _story(cluster: "LocalCluster", item: pytest.Item) -> str:
    parts = []
    if item.config.getoption("--kraft-keep"):
        parts.append(f"its data stays in {cluster.directory}")
    for name in cluster.nodes:
        lines = cluster.logs(name).splitlines()[-LOG_LINES:]
        state = "running" if cluster.is_running(name) else f"ended {cluster.exit_code(name)}"
        parts.append(f"{name} ({state})\n" + "\n".join(f"  {line}" for line in lines))
    return "\n".join(parts)
