"""The servers that the conformance cases run against: ours, and the real one where it is."""

from collections.abc import Iterator

import pytest

from chaos.toxiproxy.real import find_binary
from chaos.toxiproxy.wrapper import Backend, ToxiServer
from kraftlog.errors import ConfigError
from tests.chaos.toxiproxy.sockets import Echo, Upstream

BACKENDS: tuple[Backend, ...] = ("embedded", "toxiproxy")


@pytest.fixture(scope="package", params=BACKENDS)
def started(request: pytest.FixtureRequest) -> Iterator[ToxiServer]:
    if request.param == "toxiproxy":
        try:
            find_binary()
        except ConfigError as error:
            pytest.skip(f"NOT COMPARED WITH THE REAL SERVER: {error}")
    with ToxiServer.start(request.param, seed=1) as server:
        yield server


@pytest.fixture
def server(started: ToxiServer) -> Iterator[ToxiServer]:
    """With no proxies."""
    yield started
    started.delete_all()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as echo:
        yield echo
