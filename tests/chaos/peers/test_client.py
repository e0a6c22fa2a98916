import pytest

from chaos.history import Outcome
from chaos.peers.client import PeerClient
from chaos.peers.quorums import PeerQuorum
from kraftlog.local.layout import free_port


@pytest.mark.slow
def test_operations_through_any_node(quorum: PeerQuorum) -> None:
    for name, address in quorum.addresses.items():
        with PeerClient([address]) as client:
            created = client.create_topic(f"through-{name}", seconds=40)
            assert created.outcome is Outcome.OK
            listed = client.list_topics(seconds=40)
            assert listed.offset == created.offset
            assert f"through-{name}" in listed.topics
            again = client.create_topic(f"through-{name}", seconds=40)
            assert (again.outcome, again.offset) == (Outcome.FAIL, None)
            assert "TopicExists" in again.error
            assert client.delete_topic(f"through-{name}", seconds=40).outcome is Outcome.OK


def test_where_nobody_listens_nothing_was_done() -> None:
    with PeerClient([f"127.0.0.1:{free_port(set())}"]) as client:
        answer = client.create_topic("a", seconds=1.0)
        assert answer.outcome is Outcome.FAIL
        assert "UNAVAILABLE" in answer.error
        assert client.status() is None


@pytest.mark.slow
def test_without_a_majority_it_is_unknown_or_refused_and_never_ok(quorum: PeerQuorum) -> None:
    leader = quorum.await_leader()
    others = [name for name in quorum.names if name != leader]
    for name in others:
        quorum.pause(name)
    try:
        with PeerClient([quorum.addresses[leader]]) as client:
            answer = client.create_topic("minority", seconds=1.5)
    finally:
        for name in others:
            quorum.resume(name)
    assert answer.outcome is not Outcome.OK
