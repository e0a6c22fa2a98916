"""What the data plane knows of the cluster."""

import pytest

from brokers.cluster import BrokerInfo, ClusterChange, PartitionId


@pytest.mark.parametrize(
    ("fenced", "stops", "serves"),
    [(False, False, True), (True, False, False), (False, True, False), (True, True, False)],
)
def test_a_broker_that_is_fenced_or_stops_is_not_counted_on(
    fenced: bool, stops: bool, serves: bool
) -> None:
    assert BrokerInfo(1, 7, fenced=fenced, shutting_down=stops).serves is serves


def test_a_partition_is_named_by_the_id_of_its_topic() -> None:
    assert PartitionId(b"a" * 16, 0) == (b"a" * 16, 0)
    assert len({PartitionId(b"a" * 16, 0), PartitionId(b"b" * 16, 0)}) == 2


def test_nothing_changes_by_default() -> None:
    assert not any([ClusterChange().removed, ClusterChange().changed, ClusterChange().brokers])
