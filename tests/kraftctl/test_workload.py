"""The reckoning: planted histories, each with its verdict; and a load on a real cluster."""

import pytest

from kraftctl.workload import Ack, Workload, reckon
from kraftlog.types import TopicPartition

PLACE = TopicPartition("t", 0)


def acks(*numbers: int) -> list[Ack]:
    return [Ack(number, PLACE, number, float(number)) for number in numbers]


def test_all_is_well() -> None:
    found = reckon(acks(0, 1, 2, 3), [[0, 2], [1, 3]])
    assert found.is_good
    assert (found.acknowledged, found.read) == (4, 4)


def test_an_acknowledged_record_that_is_not_there_is_lost() -> None:
    found = reckon(acks(0, 1, 2), [[0, 2]])
    assert found.lost == (1,)
    assert not found.is_good


def test_a_record_that_was_not_acknowledged_may_be_there_or_not() -> None:
    assert reckon(acks(0), [[0, 1]]).is_good
    assert reckon(acks(0), [[0]], failed=1).is_good


def test_a_record_that_is_there_twice_is_a_duplicate() -> None:
    assert reckon(acks(0, 1), [[0, 1, 1]]).duplicated == (1,)
    assert reckon(acks(0, 1), [[0, 1], [0]]).duplicated == (0,)


def test_a_record_behind_a_later_one_is_out_of_order() -> None:
    assert reckon(acks(0, 1, 2), [[0, 2, 1]]).reordered == (1,)
    assert reckon(acks(0, 1, 2), [[2], [0, 1]]).is_good  # other partitions, no order between them


def test_the_longest_gap_counts_the_edges_too() -> None:
    load = Workload("127.0.0.1:1", "t")
    load._acks = acks(10, 11, 15)
    assert load.longest_gap(10.0, 15.0) == pytest.approx(4.0)
    assert load.longest_gap(5.0, 15.0) == pytest.approx(5.0)
    assert load.longest_gap(14.0, 30.0) == pytest.approx(15.0)
    assert load.acknowledged == 3
