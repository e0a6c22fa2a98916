"""Node 1 of three voters in every role. Its epoch is 5, its log ends at 3 in epoch 2."""

from quorum.core.messages import Batch, VoteReply
from quorum.core.state import ElectionState, Follower, Leader, Prospective
from tests.quorum.core.cluster import Cluster, key_of, voters_of
from tests.quorum.core.disk import Disk

OURS = (2, 3)
LONGER = (5, 9)
SHORTER = (2, 2)


def disk_of(election: ElectionState) -> Disk:
    disk = Disk(bootstrap=voters_of(1, 2, 3), election=election)
    for offset, epoch in enumerate((1, 2, 2)):
        disk.append(Batch(offset, epoch, 1))
    return disk


def world(election: ElectionState) -> Cluster:
    cluster = Cluster(0)
    cluster.add_node(1, disk_of(election))
    return cluster


def unattached() -> Cluster:
    return world(ElectionState(5))


def unattached_voted_for_2() -> Cluster:
    return world(ElectionState(5, key_of(2)))


def unattached_with_leader() -> Cluster:
    """It knows who leads, and not where: node 9 is no voter."""
    return world(ElectionState(5, None, 9))


def prospective() -> Cluster:
    cluster = unattached()
    cluster.until(lambda: isinstance(cluster.nodes[1].role, Prospective))
    return cluster


def prospective_voted_for_2() -> Cluster:
    cluster = unattached_voted_for_2()
    cluster.until(lambda: isinstance(cluster.nodes[1].role, Prospective))
    return cluster


def candidate() -> Cluster:
    return world(ElectionState(5, key_of(1)))


def follower() -> Cluster:
    return world(ElectionState(5, None, 3))


def follower_voted_for_2() -> Cluster:
    return world(ElectionState(5, key_of(2), 3))


def follower_that_fetched() -> Cluster:
    cluster = follower()
    cluster.role(1, Follower).has_fetched = True
    return cluster


def resigned() -> Cluster:
    return world(ElectionState(5, key_of(1), 1))


def leader() -> Cluster:
    cluster = candidate()
    for request_id, flight in list(cluster.nodes[1].core._replica.inflight.items()):
        if flight.peer == key_of(2):
            cluster.reply(1, request_id, VoteReply(epoch=5, leader=None))
    cluster.role(1, Leader)
    return cluster
