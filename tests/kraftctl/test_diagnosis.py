"""What is wrong with a quorum is explained: of answers made up, and of those of real cores."""

from collections.abc import Sequence

import pytest

from kraftctl.controllers import Belief
from kraftctl.diagnosis import electorate, explain, key_of
from kraftlog._admin_wire import decode_quorum
from kraftlog.admin_types import QuorumDescription, Refused, ReplicaProgress, Voter
from kraftlog.errors import NetworkError
from kraftlog.rpc import raft_pb2
from kraftlog.types import Uuid
from quorum.description import describe_core
from tests.quorum.core.cluster import Cluster

DAY_MS = 86_400_000
THREE = (101, 102, 103)
SILENT = NetworkError("refused")


def voter(node_id: int, disk: int = 1) -> Voter:
    return Voter(node_id, Uuid(b"%08d%08d" % (node_id, disk)), f"127.0.0.1:{node_id}")


def belief(
    node_id: int,
    *refusals: Refused,
    end: int = 10,
    disk: int = 1,
    voters: Sequence[int] = THREE,
    heard: Sequence[int] = THREE,
    role: str = "candidate",
    leader: Voter | None = None,
) -> QuorumDescription:
    return QuorumDescription(
        cluster_id=Uuid(b"x" * 16),
        node=voter(node_id, disk),
        role=role,
        epoch=70,
        leader=leader,
        high_watermark=5,
        applied_offset=5,
        end_offset=end,
        log_start_offset=0,
        voters=tuple(
            ReplicaProgress(voter(each), -1, None, None, 20 if each in heard else None)
            for each in voters
        ),
        observers=(),
        refusals=refusals,
        election_timeout_ms=300,
    )


def refused(peer: int, why: str, *, ago_ms: int = 20, epoch: int = 70) -> Refused:
    return Refused(peer, ago_ms, epoch, "vote", why, ours=True)


def found(*answers: Belief) -> dict[str, Belief]:
    return {f"127.0.0.1:{number}": each for number, each in enumerate(answers, 101)}


def test_a_lost_majority_is_explained() -> None:
    cause, fix = explain(found(belief(101), SILENT, SILENT))
    assert cause == "a majority is 2 of 3 voters, and 1 answers"
    assert fix == "start 102 (127.0.0.1:102), 103 (127.0.0.1:103) again"
    cause, fix = explain(found(SILENT, SILENT))
    assert cause == "no voter answers: nobody at 127.0.0.1:101, 127.0.0.1:102"


def test_a_split_vote_is_explained() -> None:
    cause, _ = explain(
        found(
            belief(101, refused(102, "already voted")),
            belief(102, refused(101, "already voted")),
            SILENT,
        )
    )
    assert cause.startswith("a split vote: 101, 102 campaign")


def test_a_lagging_candidate_is_explained() -> None:
    cause, fix = explain(
        found(belief(101, refused(102, "log behind"), end=20), belief(102, end=10), SILENT)
    )
    assert cause.startswith("102 asked for votes with a log that is behind")
    assert fix.startswith("wait until 101 campaigns, whose log ends at 20")


def test_what_was_refused_long_ago_explains_nothing() -> None:
    """The last refusals are kept for ever: those of an outage of yesterday too."""
    yesterday = refused(103, "log behind", ago_ms=DAY_MS, epoch=7)
    one = belief(101, yesterday, refused(102, "already voted"))
    other = belief(102, yesterday, refused(101, "already voted"))
    cause, _ = explain(found(one, other, SILENT))
    assert cause.startswith("a split vote: 101, 102 campaign")
    cause, _ = explain(found(belief(101, yesterday), belief(102, yesterday), SILENT))
    assert cause == "an election goes on"


def test_the_newest_refusal_decides() -> None:
    earlier = refused(103, "log behind", ago_ms=900)
    cause, _ = explain(found(belief(101, earlier, refused(102, "already voted")), belief(102)))
    assert "split vote" in cause
    later = refused(103, "log behind", ago_ms=5)
    cause, _ = explain(found(belief(101, later, refused(102, "already voted")), belief(102)))
    assert "103 asked for votes with a log that is behind" in cause


def test_who_has_no_vote_is_not_counted() -> None:
    observer = belief(201, role="unattached")
    newcomer = belief(202, voters=(), role="unattached")
    there = found(belief(101), SILENT, SILENT, observer, newcomer)
    known = electorate(there)
    assert [each.node.node_id for each in known.answering] == [101]
    assert explain(there)[0] == "a majority is 2 of 3 voters, and 1 answers"


@pytest.mark.parametrize("knows", [(), THREE])
def test_another_disk_in_the_place_of_a_voter_has_no_vote(knows: tuple[int, ...]) -> None:
    wiped = belief(102, disk=2, voters=knows, role="unattached")
    there = found(belief(101), wiped, SILENT)
    cause, fix = explain(there)
    assert cause == "a majority is 2 of 3 voters, and 1 answers"
    assert fix.startswith("start 103 (127.0.0.1:103) again; once somebody leads:")
    assert "kraftctl quorum join 127.0.0.1:101 --replace 102" in fix
    assert [key_of(each) for each in electorate(there).lost] == [key_of(voter(102))]


def test_a_majority_of_lost_disks_has_no_way_out_but_the_disks() -> None:
    _, fix = explain(found(belief(101), belief(102, disk=2), belief(103, disk=2)))
    assert fix == "bring back the directories of 102, 103: no majority without"


def test_voters_that_do_not_hear_each_other_are_named() -> None:
    cause, fix = explain(found(belief(101, heard=()), belief(102, heard=[101]), SILENT))
    assert cause == "101 does not hear 102"
    assert "the network between 127.0.0.1:101 and 127.0.0.1:102" in fix


def test_a_leader_that_only_we_do_not_reach_is_told() -> None:
    followers = [belief(each, role="follower", leader=voter(101)) for each in (102, 103)]
    cause, _ = explain(found(SILENT, *followers))
    assert cause.startswith("102, 103 follow 101 in epoch 70, which does not answer here")


def test_those_who_know_nobody_are_told_so() -> None:
    cause, fix = explain(found(belief(201, voters=())))
    assert "know of no voter" in cause
    assert "kraftctl quorum join" in fix


# -- of real cores


def said(world: Cluster, *node_ids: int) -> dict[str, Belief]:
    """What `quorum why` hears of these, while the others are silent."""
    answers: dict[str, Belief] = {}
    for node in world.nodes.values():
        answers[node.config.endpoint] = SILENT
        if node.node_id in node_ids:
            described = describe_core(node.core, world.now_ms)
            described.header.CopyFrom(raft_pb2.ReplyHeader(epoch=node.core.epoch))
            described.election_timeout_ms = world.timing.election_timeout_ms
            answers[node.config.endpoint] = decode_quorum(described)
    return answers


def time_out(world: Cluster, *node_ids: int) -> None:
    for node_id in node_ids:
        world.now_ms = max(world.now_ms, world.deadline_ms(node_id))
        world.tick(node_id)


def deliver(world: Cluster, target: int, source: int) -> None:
    """What is on the wire now."""
    for packet in [each for each in world.wire if (each.target, each.source) == (target, source)]:
        world.deliver(world.wire.index(packet))


def test_a_split_vote_of_real_cores() -> None:
    """The one of tests/quorum/transcripts/split-vote.txt."""
    world = Cluster(4)
    world.settle()
    time_out(world, 1, 2)
    world.deliver_to(3, 4)
    for target, source in ((1, 3), (1, 4), (2, 3), (2, 4), (3, 1), (3, 2), (4, 2), (4, 1)):
        deliver(world, target, source)
    answers = said(world, 1, 2, 3, 4)
    cause, _ = explain(answers)
    assert cause == "a split vote: 1, 2 campaign at the same time, and none has 3 votes"
    voted = {each.node.node_id: each.voted for each in electorate(answers).answering}
    assert [each.node_id for each in voted.values() if each] == [1, 2, 1, 2]


def test_a_lagging_candidate_of_real_cores() -> None:
    world = Cluster(3)
    world.elect(1)
    world.run(100)
    world.cut(3)
    world.propose("x")
    world.settle()
    world.crash(1)
    world.heal()
    world.lose_all()
    time_out(world, 2, 3)
    deliver(world, 2, 3)
    cause, fix = explain(said(world, 2, 3))
    assert cause == "3 asked for votes with a log that is behind: others hold more of it"
    assert fix.startswith("wait until 2 campaigns, whose log ends at")
    world.run(3_000)
    assert world.leader.node_id == 2


def test_a_lost_majority_of_real_cores() -> None:
    world = Cluster(3)
    world.elect(1)
    world.crash(1)
    world.crash(2)
    world.wipe(2)
    world.run(3_000)
    cause, fix = explain(said(world, 2, 3))
    assert cause == "a majority is 2 of 3 voters, and 1 answers"
    assert "kraftctl quorum join n3 --replace 2" in fix
