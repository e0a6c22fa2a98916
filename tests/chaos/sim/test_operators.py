"""People who change the voters."""

from random import Random

from chaos.sim.atlas import Atlas
from chaos.sim.cluster import Cluster
from chaos.sim.operators import Operators
from quorum.core.messages import ReplicaKey
from tests.chaos.sim.clusters import elect, followers, run_for, run_until, start


def operate(cluster: Cluster) -> Operators:
    return Operators(cluster, Atlas(cluster))


def voters(cluster: Cluster) -> set[ReplicaKey]:
    leader = cluster.leader
    return set(leader.core.voters.keys) if leader and leader.core else set()


def test_a_lost_voter_is_removed_and_its_successor_added() -> None:
    cluster = start(3)
    leader = elect(cluster)
    operate(cluster).begin()
    old = followers(cluster, leader)[0]
    new = cluster.replace_disk(old)
    run_until(cluster, lambda: new.key in voters(cluster) and len(voters(cluster)) == 3)
    assert old.key not in voters(cluster)
    run_until(cluster, lambda: cluster.sightings["wiped voter replaced"] == 1)
    assert cluster.sightings["voter removed"] == 1


def test_voters_come_and_go_for_no_reason() -> None:
    cluster = start(3, observers=2, brokers=1)
    elect(cluster)
    operators, dice = operate(cluster), Random(1)
    seen = set()
    for _ in range(40):
        operators.change_voters(dice)
        run_for(cluster, 1_000)
        seen.add(len(voters(cluster)))
        assert cluster.nodes[5].key not in voters(cluster)  # the broker
    assert len(seen - {0}) > 2
    assert cluster.sightings["leader removed itself"] > 0


def test_the_last_majority_is_not_given_away() -> None:
    cluster = start(2)
    leader = elect(cluster)
    other = followers(cluster, leader)[0]
    cluster.lost.add(other.key)  # nobody would survive on {other}, nor get its vote
    operators, dice = operate(cluster), Random(1)
    for _ in range(20):
        operators.change_voters(dice)
        run_for(cluster, 100)
    assert leader.key in voters(cluster)


def test_nothing_happens_after_the_end() -> None:
    cluster = start(3)
    leader = elect(cluster)
    operators = operate(cluster)
    operators.begin()
    operators.end()
    cluster.replace_disk(followers(cluster, leader)[0])
    run_for(cluster, 3_000)
    assert cluster.sightings["voter removed"] == 0


def asked(cluster: Cluster) -> int:
    return sum("operator" in line for line in cluster.trace.recent())


def test_after_the_faults_nobody_waits_for_an_election_to_change_voters() -> None:
    cluster = start(3, observers=2)
    leader, operators, dice = elect(cluster), operate(cluster), Random(1)
    for _ in range(6):
        operators.change_voters(dice)
    operators.calm_down()
    before = asked(cluster)
    assert before > 0
    leader.die()
    run_until(cluster, lambda: cluster.leader not in (None, leader))
    run_for(cluster, 20.0)
    assert asked(cluster) == before
