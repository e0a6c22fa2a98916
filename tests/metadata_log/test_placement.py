"""R25: where replicas go."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import InvalidReplicationFactor
from metadata_log.placement import UsableBroker, place
from tests.metadata_log.clusters import Dice, NoDice


def brokers(count: int, racks: int = 0, fenced: frozenset[int] = frozenset()) -> list[UsableBroker]:
    return [
        UsableBroker(number, f"rack{number % racks}" if racks else None, number in fenced)
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_six_brokers_ten_partitions_three_replicas_give_five_each(seed: int) -> None:  # R25
    placed = place(brokers(6), 10, 3, Dice(seed))
    assert Counter(broker for replicas in placed for broker in replicas) == Counter(
        dict.fromkeys(range(1, 7), 5)
    )
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.values()) == 1


def test_leaders_go_round_and_followers_stand_further_away_each_round() -> None:  # R25
    assert place(brokers(4), 10, 2, NoDice()) == [
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 1),
        (1, 3),
        (2, 4),
        (3, 1),
        (4, 2),
        (1, 3),
        (2, 4),
    ]


@given(st.integers(1, 12), st.integers(1, 60), st.data())
def test_without_racks_all_brokers_get_the_same_or_one_more(
    count: int, partitions: int, data: st.DataObject
) -> None:
    replication_factor = data.draw(st.integers(1, count))
    placed = place(brokers(count), partitions, replication_factor, Dice(data.draw(st.integers())))
    load = Counter(dict.fromkeys(range(1, count + 1), 0))
    leaders = Counter(load)
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == replication_factor
        load.update(replicas)
        leaders[replicas[0]] += 1
    assert max(load.values()) - min(load.values()) <= 1
    assert max(leaders.values()) - min(leaders.values()) <= 1


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 40), st.data())
def test_racks_differ_as_long_as_there_are_others(
    racks: int, per_rack: int, partitions: int, data: st.DataObject
) -> None:
    usable = brokers(racks * per_rack, racks)
    rack_of = {broker.id: broker.rack for broker in usable}
    replication_factor = data.draw(st.integers(1, len(usable)))
    placed = place(usable, partitions, replication_factor, Dice(data.draw(st.integers())))
    leaders = Counter(replicas[0] for replicas in placed)
    for replicas in placed:
        assert len(set(replicas)) == replication_factor
        per = Counter(rack_of[broker] for broker in replicas)
        assert len(per) == min(racks, replication_factor)
        assert max(per.values()) == -(-replication_factor // racks)
    assert max(leaders.values()) - min(leaders.get(b.id, 0) for b in usable) <= 1


@given(st.integers(2, 8), st.integers(1, 20), st.integers(0, 3), st.data())
def test_fenced_brokers_lead_nothing_and_come_last(
    count: int, partitions: int, racks: int, data: st.DataObject
) -> None:
    fenced = data.draw(st.sets(st.integers(1, count), max_size=count - 1))
    replication_factor = data.draw(st.integers(1, count))
    usable = brokers(count, racks, frozenset(fenced))
    for replicas in place(usable, partitions, replication_factor, Dice(1)):
        assert replicas[0] not in fenced
        assert len(set(replicas)) == replication_factor
        if not racks and replication_factor <= count - len(fenced):
            assert not set(replicas) & fenced


def test_a_dead_leaders_partitions_fall_to_many() -> None:
    placed = place(brokers(6), 60, 3, Dice(3))
    heirs = Counter(replicas[1] for replicas in placed if replicas[0] == 1)
    assert len(heirs) == 5
    assert max(heirs.values()) == 2


@pytest.mark.parametrize(
    ("usable", "replication_factor", "why"),
    [
        (brokers(3), 0, "cannot have 0 replicas"),
        (brokers(3), -1, "cannot have -1 replicas"),
        (brokers(3), 4, "4 replicas need as many brokers, and 3 are there"),
        ([], 1, "and 0 are there"),
        (brokers(2, fenced=frozenset({1, 2})), 1, "all brokers are fenced"),
    ],
)
def test_what_cannot_be_placed(
    usable: list[UsableBroker], replication_factor: int, why: str
) -> None:
    with pytest.raises(InvalidReplicationFactor, match=why):
        place(usable, 1, replication_factor, NoDice())
