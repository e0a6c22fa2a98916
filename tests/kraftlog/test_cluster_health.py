from kraftlog.admin_types import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    QuorumDescription,
    ReplicaProgress,
    TopicDescription,
    Voter,
)
from kraftlog.cluster_health import (
    GREEN,
    RED,
    YELLOW,
    Belief,
    ClusterHealth,
    Problem,
    judge_brokers,
    judge_partitions,
    judge_quorum,
    leader_of,
    short_topics,
    under_min_isr,
)
from kraftlog.errors import NetworkError
from kraftlog.types import Uuid

ID = Uuid(b"i" * 16)


def belief(role: str, epoch: int) -> QuorumDescription:
    return QuorumDescription(None, Voter(101, ID), role, epoch, None, 0, 0, 0, 0, (), (), ())


def voice(
    node: int, epoch: int, leader: int | None, *, heard_ms: int | None = 10
) -> QuorumDescription:
    """What a voter says; `heard_ms`: how long ago it has heard of the others."""
    voters = tuple(ReplicaProgress(Voter(each, ID), 0, 1, 1, heard_ms) for each in (101, 102, 103))
    role = "leader" if leader == node else "follower" if leader else "prospective"
    return QuorumDescription(
        None,
        Voter(node, ID),
        role,
        epoch,
        None if leader is None else Voter(leader, ID),
        *(0, 0, 0, 0),
        voters,
        (),
        (),
        election_timeout_ms=300,
    )


def beliefs(*voices: QuorumDescription) -> dict[str, Belief]:
    return {f"c{each.node.node_id}:1": each for each in voices}


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


def test_controllers_that_agree_are_no_problem() -> None:
    assert judge_quorum(beliefs(*(voice(each, 7, 101) for each in (101, 102, 103)))) == []


def test_two_leaders_of_one_epoch_are_told() -> None:
    found = judge_quorum(beliefs(voice(101, 7, 101), voice(102, 7, 101), voice(103, 7, 102)))
    assert found[0].grade is YELLOW
    assert found[0].what == (
        "controllers name different leaders of epoch 7: 101 by 101, 102; 102 by 103"
    )


def test_a_voter_that_does_not_follow_is_told_unless_it_is_about_to() -> None:
    old, none = voice(103, 6, 102), voice(103, 7, None)
    for stray, believes in ((old, "102 leads epoch 6"), (none, "nobody leads epoch 7")):
        deaf = beliefs(voice(101, 7, 101, heard_ms=60_000), voice(102, 7, 101), stray)
        (problem,) = judge_quorum(deaf)
        assert problem.grade is YELLOW
        assert f"controller 103 believes that {believes}, while 101 leads epoch 7" in problem.what
        in_touch = beliefs(voice(101, 7, 101, heard_ms=100), voice(102, 7, 101), stray)
        assert judge_quorum(in_touch) == []


def test_an_observer_may_believe_what_it_likes() -> None:
    assert judge_quorum(beliefs(voice(101, 7, 101, heard_ms=None), voice(104, 6, 102))) == []


def test_partitions_that_refuse_acks_all_are_counted() -> None:
    short = topic((1, (1,)), (1, (1, 2)), (-1, ()))
    assert short_topics([short]) == ["t"]
    assert [under_min_isr([short], {"t": needed}) for needed in (1, 2, 3)] == [0, 1, 1]
    assert under_min_isr([short], {}) == 0
    assert RED in {each.grade for each in judge_partitions([topic((1, (1,)))], {"t": 2})}
    assert {each.grade for each in judge_partitions([topic((1, (1,)))], {"t": 1})} == {YELLOW}
