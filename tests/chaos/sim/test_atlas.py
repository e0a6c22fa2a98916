"""Which damage the quorum can survive."""

from chaos.sim.atlas import Atlas
from chaos.sim.cluster import Cluster
from quorum.core.messages import Voter, VoterSet
from tests.chaos.sim.clusters import elect, start


def led(voters: int) -> tuple[Cluster, Atlas]:
    cluster = start(voters, observers=1)
    elect(cluster)
    return cluster, Atlas(cluster)


def test_a_minority_may_be_lost() -> None:
    cluster, atlas = led(3)
    keys = [node.key for node in cluster.nodes]
    assert atlas.may_lose(keys[0])
    assert not atlas.may_lose(keys[0], keys[1])
    assert atlas.may_lose(keys[0], keys[3])  # an observer counts for nothing
    cluster.lost.add(keys[2])
    assert not atlas.may_lose(keys[0])
    assert atlas.may_lose(keys[2])  # it is lost already


def test_of_two_none_may_be_lost() -> None:
    cluster, atlas = led(2)
    assert not atlas.may_lose(cluster.nodes[0].key)


def test_a_voter_that_moved_counts_for_nothing_until_the_log_knows() -> None:
    cluster, atlas = led(3)
    cluster.nodes[0].port += 1
    assert atlas.unsound() == {cluster.nodes[0].key}
    assert not atlas.may_lose(cluster.nodes[1].key)
    assert atlas.may_lose(cluster.nodes[0].key)


def test_new_voters_need_a_sound_majority_too() -> None:
    cluster, atlas = led(3)
    voters = [Voter(node.key, node.endpoint) for node in cluster.nodes]
    cluster.lost.add(voters[0].key)
    assert atlas.may_become(VoterSet.of(voters[:3]))
    assert not atlas.may_become(VoterSet.of(voters[:2]))
    assert atlas.may_become(VoterSet.of(voters[1:2]))
    assert not atlas.may_become(VoterSet())


def test_sets_that_are_not_committed_yet_may_act() -> None:
    cluster, atlas = led(3)
    node = cluster.nodes[2]
    assert node.core is not None
    newest = node.core.log.voter_history[-1]
    lonely = VoterSet.of([Voter(cluster.nodes[0].key, "n1:1")])
    node.core.log.voter_history.append(type(newest)(newest.offset + 100, lonely))
    assert lonely in atlas.acting_sets()
    assert not atlas.may_lose(cluster.nodes[0].key)
    node.core.log.voter_history[-1] = type(newest)(-5, lonely)  # long superseded
    assert lonely not in atlas.acting_sets()


def test_what_a_lost_replica_knew_still_counts() -> None:
    cluster, atlas = led(3)
    before = len(atlas.acting_sets())
    cluster.replace_disk(cluster.nodes[0])
    assert len(atlas.acting_sets()) == before
