"""A voter that has moved, and an observer whose leader is silent."""

from quorum.core.effects import Effect, Send
from quorum.core.messages import UpdateVoterRequest, Voter
from quorum.core.state import ElectionState, Unattached
from tests.quorum.core.cluster import Cluster, key_of, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.world import Node


def test_a_voter_that_has_moved_tells_the_leader_after_a_while() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.restart(2, endpoint="new")
    cluster.run(cluster.timing.update_voter_ms - 1)
    assert cluster.nodes[1].core.voters.find(2) == voter_of(2)
    cluster.run(cluster.timing.fetch_wait_ms + 1)
    moved = Voter(key_of(2), "new")
    assert all(node.core.voters.find(2) == moved for node in cluster.alive)
    sent: list[Send] = []

    def watch(_: Node, e: Effect) -> None:
        if isinstance(e, Send) and isinstance(e.request, UpdateVoterRequest):
            sent.append(e)

    cluster.trace = watch
    cluster.run(20_000)
    assert sent == [], "once is enough"


def test_an_observer_gives_a_silent_leader_up_without_a_campaign() -> None:
    cluster = Cluster(0)
    disk = Disk(bootstrap=voters_of(1), election=ElectionState(5, None, 1))
    cluster.add_node(2, disk)
    cluster.run(2_000)
    cluster.role(2, Unattached)
    assert cluster.nodes[2].core.epoch == 5
