"""The nodes and what surrounds them."""

from chaos.sim.cluster import CLUSTER_ID
from tests.chaos.sim.clusters import elect, run_for, run_until, start


def test_voters_observers_and_brokers_are_formed() -> None:
    cluster = start(3, observers=1, brokers=1)
    leader = elect(cluster)
    assert leader.core is not None
    assert [key.node_id for key in leader.core.voters.keys] == [1, 2, 3]
    assert [node.is_broker for node in cluster.nodes] == [False] * 4 + [True]
    configs = [cluster.config_of(node) for node in cluster.nodes]
    assert [config.flush_always for config in configs] == [True] * 4 + [False]
    assert {config.cluster_id for config in configs} == {CLUSTER_ID}
    assert configs[4].peers == ("n1:1", "n2:1", "n3:1", "n4:1")


def test_an_empty_disk_is_another_replica_at_the_same_address() -> None:
    cluster = start(3)
    old = cluster.nodes[1]
    old.port = 7
    new = cluster.replace_disk(old)
    assert new.key.node_id == old.key.node_id
    assert new.key != old.key
    assert cluster.node_at("n2:7") is new
    assert cluster.lost == {old.key}
    assert cluster.node_at("n2:1") is None
    assert not old.is_up
    assert new.core is not None
    assert len(new.core.voters) == 0


def test_a_dead_node_comes_back_unless_it_is_to_stay_down() -> None:
    cluster = start(3)
    for node in cluster.nodes[:2]:
        node.die()
    cluster.stays_down.add(cluster.nodes[0].node_id)
    run_until(cluster, lambda: cluster.nodes[1].is_up)
    run_for(cluster, 5_000)
    assert not cluster.nodes[0].is_up
    assert [node.name for node in cluster.alive] == ["n2", "n3"]


def test_the_newest_leader_comes_first() -> None:
    cluster = start(3)
    old = elect(cluster)
    old.paused = True
    run_until(cluster, lambda: len(cluster.leaders) == 2)
    assert cluster.leader is not old
    assert cluster.leaders[1] is old
    assert f"{old.name} Leader" in "\n".join(cluster.describe())


def test_dice_of_a_name_are_always_the_same() -> None:
    one, other = start(1), start(1)
    assert one.dice("x").random() == other.dice("x").random()
    assert one.dice("x").random() != one.dice("y").random()
