from kraftlog.local.probe import ClusterNow, PartitionNow, Probe
from kraftlog.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_what_is_wrong_with_a_cluster() -> None:
    now = ClusterNow(
        frozenset({1, 2}),
        101,
        {
            A: PartitionNow(1, (1, 2), (1, 2)),
            B: PartitionNow(-1, (1, 2), ()),
            C: PartitionNow(3, (3, 2), (3,)),
        },
    )
    assert now.leaderless() == [B, C]  # broker 3 is not there
    assert now.out_of_sync() == [B, C]
    assert not now.leads("t")
    assert not now.leads("nothing")


def test_a_topic_that_is_led() -> None:
    now = ClusterNow(
        frozenset({1}),
        101,
        {A: PartitionNow(1, (1,), (1,)), TopicPartition("u", 0): PartitionNow(-1, (1,), ())},
    )
    assert now.leads("t")


def test_a_replica_that_is_down_is_not_waited_for() -> None:
    now = ClusterNow(frozenset({1}), 101, {A: PartitionNow(1, (1, 2), (1,))})
    assert now.out_of_sync() == []


def test_nobody_at_home() -> None:
    with Probe() as probe:
        assert not probe.is_serving("127.0.0.1:1", "kraftlog.rpc.Broker")
        assert probe.look("127.0.0.1:1") is None
