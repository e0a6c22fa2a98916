from brokers.cluster import Assignment, BrokerInfo, PartitionId
from metadata_log.records import PartitionChange, Recovery
from tests.brokers.images import topic, uuid
from tests.brokers.views import view_of


def test_a_partition_as_the_data_plane_sees_it() -> None:
    change = PartitionChange(
        uuid("a"), 1, leader=2, isr=(2,), elr=(1,), adding=(3,), recovery=Recovery.RECOVERING
    )
    view = view_of(topic("a", [1, 2], [1, 2]), [change])
    place = PartitionId(uuid("a").raw, 1)
    assert view.assignment(place) == Assignment(
        place,
        "a",
        leader=2,
        leader_epoch=1,
        partition_epoch=1,
        replicas=(1, 2),
        isr=(2,),
        elr=(1,),
        adding=(3,),
        recovering=True,
    )
    assert view.assignment(PartitionId(uuid("a").raw, 2)) is None
    assert view.assignment(PartitionId(uuid("b").raw, 0)) is None
    assert view.assignment(PartitionId(b"short", 0)) is None


def test_a_broker_as_the_data_plane_sees_it() -> None:
    view = view_of()
    assert view.broker(2) == BrokerInfo(2, 20, rack="r2", endpoint="host2:9002")
    assert view.broker(2) is view.broker(2)
    assert view.broker(9) is None


def test_names_and_addresses() -> None:
    view = view_of(topic("a", [1]))
    assert view.topic_id("a") == uuid("a").raw
    assert view.topic_id("b") is None
    assert view.endpoint(3) == "host3:9003"
    assert view.endpoint(9) is None
