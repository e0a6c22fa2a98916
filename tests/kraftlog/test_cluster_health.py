from kraftlog.admin_types import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
    Voter,
)
from kraftlog.cluster_health import (
    GREEN,
    RED,
    YELLOW,
    ClusterHealth,
    Problem,
    judge_brokers,
    judge_partitions,
    judge_quorum,
    leader_of,
)
from kraftlog.errors import NetworkError
from kraftlog.types import Uuid

ID = Uuid(b"i" * 16)


def belief(role: str, epoch: int) -> QuorumDescription:
    return QuorumDescription(None, Voter(101, ID), role, epoch, None, 0, 0, 0, 0, (), (), ())


def topic(*states: tuple[int, tuple[int, ...]]) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(number, leader, 0, 0, (1, 2), isr)
        for number, (leader, isr) in enumerate(states)
    )
    return TopicDescription("t", ID, partitions, {})


def broker(*, fenced: bool, cause: str = "") -> BrokerDescription:
    return BrokerDescription(1, 9, ID, "b1", 19101, None, fenced, False, cause, None, 0, 0, 0)


def test_the_worst_problem_is_the_grade() -> None:
    one, other = Problem(YELLOW, "a", "b"), Problem(RED, "c", "d")
    assert ClusterHealth().grade is GREEN
    assert ClusterHealth((one,)).grade is YELLOW
    assert ClusterHealth((other, one)).grade is RED
    assert str(ClusterHealth((other, one))) == "RED; c; a"


def test_as_good_as() -> None:
    assert GREEN.is_as_good_as(YELLOW)
    assert YELLOW.is_as_good_as(YELLOW)
    assert not RED.is_as_good_as(YELLOW)


def test_the_leader_is_that_of_the_newest_epoch() -> None:
    old, new = belief("leader", 3), belief("leader", 4)
    assert leader_of([old, new]) is new
    assert leader_of([old, belief("follower", 4)]) is None
    assert leader_of([NetworkError("x")]) is None


def test_a_quorum_without_a_leader_is_red_and_a_silent_controller_yellow() -> None:
    silent = NetworkError("x")
    assert judge_quorum({"a:1": belief("leader", 1)}) == []
    assert [each.grade for each in judge_quorum({"a:1": belief("leader", 1), "b:1": silent})] == [
        YELLOW
    ]
    assert [each.grade for each in judge_quorum({"b:1": silent})] == [YELLOW, RED]
    assert judge_quorum({}) == []


def test_a_fenced_broker_is_yellow_and_says_why() -> None:
    brokers = (broker(fenced=False), broker(fenced=True, cause="METADATA_LAG"))
    (problem,) = judge_brokers(ClusterDescription(ID, 101, 1, brokers, 0, 0, {}, 0))
    assert (problem.grade, problem.what) == (YELLOW, "broker 1 is fenced: METADATA_LAG")


def test_partitions() -> None:
    assert judge_partitions([topic((1, (1, 2)))]) == []
    found = judge_partitions([topic((1, (1, 2)), (2, (2,))), topic((-1, ()))])
    assert [(each.grade, each.what) for each in found] == [
        (RED, "1 partitions have no leader"),
        (YELLOW, "2 partitions are under-replicated"),
    ]
