from collections.abc import Iterator

import pytest

from chaos.peers.quorums import PeerQuorum


@pytest.fixture(scope="package")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerQuorum]:
    with PeerQuorum(str(tmp_path_factory.mktemp("peers"))) as quorum:
        quorum.start()
        yield quorum


@pytest.fixture
def quorum(started: PeerQuorum) -> PeerQuorum:
    """Three nodes that agree, shared by all tests: whoever breaks it mends it."""
    started.await_agreement()
    return started
