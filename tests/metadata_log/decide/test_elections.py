"""R12. The story is transcripts/elections.txt."""

import pytest

from kraftlog.errors import InvalidRequest, PolicyViolation, UnknownTopicOrPartition
from metadata_log.decide import elections
from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.decide.elections import (
    ElectLeaders,
    elect_leaderless,
    elect_leaders,
    find_place,
    rebalance,
)
from metadata_log.election import Election
from metadata_log.image import Role
from metadata_log.records import Resource, ResourceType
from tests.metadata_log.clusters import WHY, Cluster, partition


def displaced(count: int) -> Cluster:
    """All led by 2, though 1 is preferred and in sync again."""
    cluster = Cluster([1, 2])
    cluster.create("t", *[(1, 2)] * count)
    cluster.fence(1)
    cluster.unfence(1)
    for number in range(count):
        cluster.alter("t", 1, 2, partition=number)
    return cluster


def test_leadership_goes_back_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:  # R12
    monkeypatch.setattr(elections, "PARTITIONS_PER_EVENT_MAX", 10)
    cluster = displaced(23)
    counts = []
    decision = rebalance(cluster.image)
    while True:
        counts.append(cluster.decided(decision))
        if decision.agenda is None:
            break
        decision = rebalance(cluster.image, agenda=decision.agenda)
    assert counts == [10, 10, 3]
    assert len(cluster.image.places(Role.LEADER, 1)) == 23
    assert rebalance(cluster.image).records == ()


def test_a_preferred_leader_that_is_not_in_sync_waits() -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    cluster.fence(1)
    cluster.unfence(1)
    assert cluster.decided(rebalance(cluster.image)) == 0
    assert cluster.state("t").leader == 2


def test_preferred_is_never_unclean() -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2), configs={"unclean.leader.election.enable": "true"})
    cluster.alter("t", 1)
    cluster.fence(2)
    cluster.fence(1)
    cluster.unfence(2)
    assert cluster.state("t").leader == 2  # unclean, since the topic allows it
    cluster.unfence(1)
    request = ElectLeaders(Election.PREFERRED, (partition("t"),))
    ((_, outcome),) = cluster.decided(elect_leaders(cluster.image, request))
    assert outcome.error is not None
    assert cluster.state("t").leader == 2


def test_all_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "PARTITIONS_PER_EVENT_MAX", 2)
    cluster = displaced(3)
    request = ElectLeaders(Election.PREFERRED, None)
    first = elect_leaders(cluster.image, request)
    assert [str(where) for where, _ in cluster.decided(first)] == ["t-0", "t-1"]
    rest = elect_leaders(cluster.image, request, agenda=first.agenda)
    assert [outcome.value for _, outcome in cluster.decided(rest)] == [1]


def test_the_same_partition_twice_is_elected_once() -> None:
    cluster = displaced(1)
    request = ElectLeaders(Election.PREFERRED, (partition("t"), partition("t")))
    assert len(cluster.decided(elect_leaders(cluster.image, request))) == 1


def test_what_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = displaced(1)
    with pytest.raises(InvalidRequest):
        elect_leaders(cluster.image, ElectLeaders(Election.ONLINE, None))
    monkeypatch.setattr(elections, "RECORDS_PER_REQUEST_MAX", 0)
    with pytest.raises(PolicyViolation):
        elect_leaders(cluster.image, ElectLeaders(Election.UNCLEAN, (partition("t"),)))
    for wrong in (partition("t", -1), partition("t", 1), partition("u")):
        with pytest.raises(UnknownTopicOrPartition):
            find_place(cluster.image, wrong)


def test_allowing_unclean_elections_lets_the_leaderless_be_led() -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    cluster.alter("t", 1)
    cluster.fence(1)
    assert cluster.decided(elect_leaderless(cluster.image, WHY)) == 0
    change = ConfigChange("unclean.leader.election.enable", Operation.SET, "true")
    topic = ResourceChanges(Resource(ResourceType.TOPIC, "t"), (change,))
    cluster.decided(alter_configs(cluster.image, AlterConfigs((topic,))))
    assert cluster.decided(elect_leaderless(cluster.image, WHY)) == 1
    assert cluster.state("t").leader == 2
