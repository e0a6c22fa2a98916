"""The peer and our own quorum, behind one protocol."""

from collections.abc import Iterator

import pytest

from chaos.history import Outcome
from chaos.peers.quorums import AdminClient, Quorum, open_quorum
from kraftlog.errors import ConfigError


def test_an_engine_that_is_none() -> None:
    with pytest.raises(ConfigError, match="there are kraftlog, pysyncobj"):
        open_quorum("zookeeper", "nowhere")


@pytest.fixture
def ours(tmp_path: object) -> Iterator[Quorum]:
    quorum = open_quorum("kraftlog", f"{tmp_path}/data")
    yield quorum
    quorum.close()


@pytest.mark.slow
def test_our_own_quorum_answers_in_the_same_words(ours: Quorum) -> None:
    client = ours.client()
    assert isinstance(client, AdminClient)
    assert client.create_topic("a", seconds=40).outcome is Outcome.OK
    twice = client.create_topic("a", seconds=40)
    assert twice.outcome is Outcome.FAIL
    assert "exists" in twice.error
    assert client.list_topics(seconds=40).topics == ("a",)
    assert client.delete_topic("a", seconds=40).outcome is Outcome.OK
    epoch, leader = ours.await_reign()
    assert epoch >= 1
    assert {leader, *ours.followers(leader)} == {"c1", "c2", "c3"}
    client.close()
