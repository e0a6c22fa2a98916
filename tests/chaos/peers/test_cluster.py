import pytest

from chaos.history import Outcome
from chaos.peers.cluster import PeerCluster
from chaos.peers.quorums import PeerQuorum
from kraftlog.errors import ConfigError


def test_a_node_that_is_none(tmp_path: object) -> None:
    with PeerCluster(str(tmp_path)) as cluster:
        assert cluster.names == ["p1", "p2", "p3"]
        with pytest.raises(ConfigError, match="no node 'p9'"):
            cluster.kill("p9")


@pytest.mark.slow
def test_a_follower_is_killed_and_catches_up(quorum: PeerQuorum) -> None:
    leader = quorum.await_leader()
    follower = next(name for name in quorum.names if name != leader)
    quorum.kill(follower)
    assert follower not in quorum.statuses()
    client = quorum.client()
    assert client.create_topic("while-it-was-away", seconds=40).outcome is Outcome.OK
    quorum.restart(follower)
    quorum.await_agreement()
    assert "while-it-was-away" in client.list_topics(seconds=40).topics
    client.close()
