"""Following: the snapshot that a leader offers in the place of its log."""

from dataclasses import replace
from itertools import pairwise

import pytest

from kraftlog._check import InvariantViolation
from quorum.core.effects import (
    DropSnapshot,
    Effect,
    StartSnapshot,
)
from quorum.core.messages import (
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    Refusal,
    SnapshotId,
)
from quorum.core.state import Follower, Prospective
from tests.quorum.core.cluster import Cluster, kinds, voter_of, voters_of
from tests.quorum.core.requests import begin
from tests.quorum.core.test_follower import answer, asked, good, inflight, lone_follower
from tests.quorum.core.world import Node

SNAPSHOT = SnapshotId(9, 3)


def downloading(*epochs: int) -> Cluster:
    cluster = lone_follower(*epochs)
    cluster.lose_all()
    answer(cluster, good(snapshot=SNAPSHOT))
    return cluster


def chunk(**content: object) -> FetchSnapshotReply:
    reply = FetchSnapshotReply(
        epoch=5, leader=voter_of(1), snapshot=SNAPSHOT, size=6, position=0, data=b"abc"
    )
    return replace(reply, **content)  # type: ignore[arg-type]


def send_chunk(cluster: Cluster, **content: object) -> None:
    cluster.reply(2, max(cluster.nodes[2].open_requests), chunk(**content))


def test_a_snapshot_is_fetched_instead_of_the_log() -> None:
    cluster = downloading()
    assert kinds(cluster.wire) == ["2>-1 FetchSnapshotRequest"]
    request = cluster.wire[0].body
    assert isinstance(request, FetchSnapshotRequest)
    assert (request.snapshot, request.position) == (SNAPSHOT, 0)


def test_the_next_chunk_is_asked_for_where_the_last_one_ended() -> None:
    cluster = downloading()
    send_chunk(cluster)
    request = cluster.wire[-1].body
    assert isinstance(request, FetchSnapshotRequest)
    assert request.position == 3
    assert cluster.nodes[2].disk.download == (SNAPSHOT, bytearray(b"abc"))


@pytest.mark.parametrize(
    "content",
    [
        {"position": 3},
        {"snapshot": SnapshotId(10, 3)},
        {"data": b""},
        {"data": b"abcdefg"},
        {"size": 2},
    ],
    ids=str,
)
def test_a_chunk_that_does_not_fit_is_not_taken(content: dict[str, object]) -> None:
    cluster = downloading()
    cluster.now_ms = 100
    deadline_ms = cluster.role(2, Follower).fetch_deadline_ms
    send_chunk(cluster, **content)
    assert cluster.nodes[2].disk.download == (SNAPSHOT, bytearray())
    assert cluster.role(2, Follower).fetch_deadline_ms == deadline_ms


@pytest.mark.parametrize("refusal", [Refusal.SNAPSHOT_NOT_FOUND, Refusal.POSITION_OUT_OF_RANGE])
def test_a_snapshot_that_is_gone_is_dropped_and_the_leader_asked_anew(refusal: Refusal) -> None:
    cluster = downloading()
    effects: list[object] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    send_chunk(cluster, refusal=refusal)
    assert effects[0] == DropSnapshot(SNAPSHOT)
    assert asked(cluster).offset == 0


def test_a_refused_chunk_does_not_keep_a_leader_alive() -> None:
    """One that resigned in the middle of a download would be asked for ever."""
    cluster = downloading()
    cluster.now_ms = 100
    send_chunk(cluster, refusal=Refusal.NOT_LEADER, leader=None)
    assert cluster.role(2, Follower).fetch_deadline_ms <= 100 + 1_000
    cluster.run(1_000)
    cluster.role(2, Prospective)


def test_a_new_leader_means_a_new_download() -> None:
    cluster = downloading()
    effects: list[object] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    cluster.answer(2, begin(3, epoch=6))
    assert DropSnapshot(SNAPSHOT) in effects
    assert cluster.role(2, Follower).download is None


@pytest.mark.parametrize("snapshot", [SnapshotId(2, 1), SnapshotId(9, 6)], ids=str)
def test_a_snapshot_that_no_leader_would_offer_is_nonsense(snapshot: SnapshotId) -> None:
    # of what we know to be committed, or from an epoch after ours
    cluster = lone_follower(1, 1)
    answer(cluster, good(high_watermark=2))
    effects: list[object] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    answer(cluster, good(snapshot=snapshot))
    assert not [each for each in effects if isinstance(each, StartSnapshot)]
    assert inflight(cluster.nodes[2]) == [], "not asked again without a pause"


def test_a_download_that_makes_no_sense_is_thrown_away() -> None:
    cluster = downloading()
    send_chunk(cluster, size=3)  # the world knows of no such snapshot
    assert cluster.role(2, Follower).download is None
    core = cluster.nodes[2].core
    assert [note.refusal for note in core.refusals[1]] == [Refusal.SNAPSHOT_DAMAGED]
    assert core.snapshots_rejected == 1
    assert cluster.nodes[2].disk.start_offset == 0


def downloads_within(cluster: Cluster, ms: int) -> list[int]:
    """When node 2 began one, where its leader always offers the same, which makes no sense."""
    begun: list[int] = []

    def note(_: Node, effect: Effect) -> None:
        if isinstance(effect, StartSnapshot):
            begun.append(cluster.now_ms)

    cluster.trace = note
    end_ms = cluster.now_ms + ms
    while cluster.now_ms < end_ms:
        for request_id, flight in list(cluster.nodes[2].core._replica.inflight.items()):
            is_fetch = isinstance(flight.request, FetchRequest)
            cluster.reply(2, request_id, good(snapshot=SNAPSHOT) if is_fetch else chunk(size=3))
        cluster.run(50)
    return begun


def test_a_snapshot_that_makes_no_sense_is_asked_for_after_growing_pauses() -> None:
    cluster = downloading()
    begun = downloads_within(cluster, 300_000)
    pauses_s = [(later - before) // 1000 for before, later in pairwise(begun)]
    assert pauses_s[:5] == [4, 8, 16, 32, 60]
    assert max(pauses_s) <= 62
    assert cluster.role(2, Follower).has_fetched, "the leader is alive for all that"


def test_another_snapshot_or_that_of_another_leader_does_not_wait() -> None:
    cluster = downloading()
    send_chunk(cluster, size=3)
    cluster.run(cluster.timing.sign_of_life_ms)
    answer(cluster, good(snapshot=SnapshotId(SNAPSHOT.end_offset + 1, 3)))
    assert cluster.role(2, Follower).download is not None
    cluster = downloading()
    send_chunk(cluster, size=3)
    cluster.answer(2, begin(3, epoch=6))
    answer(cluster, good(epoch=6, leader=voter_of(3), snapshot=SNAPSHOT))
    assert cluster.role(2, Follower).download is not None


def test_a_check_that_takes_long_costs_neither_the_leader_nor_the_download() -> None:
    cluster = downloading()
    cluster.auto_check = False
    send_chunk(cluster, size=3)
    requests = cluster.nodes[2].core._replica
    made = requests._requests_made
    for _ in range(10):
        cluster.run(cluster.timing.sign_of_life_ms)
        (flight,) = requests.inflight.values()
        assert isinstance(flight.request, FetchSnapshotRequest)
        assert flight.request.position == 2, "a byte that it has"
        send_chunk(cluster, size=3, position=2, data=b"c")
    assert requests._requests_made == made + 10
    role = cluster.role(2, Follower)
    assert role.download is not None
    assert role.download.position == 3


def test_a_check_that_ends_when_there_is_a_new_leader_is_not_heard_of() -> None:
    cluster = downloading()
    cluster.auto_check = False
    send_chunk(cluster, size=3)
    cluster.answer(2, begin(3, epoch=6))
    assert not cluster.nodes[2].is_checking
    assert cluster.nodes[2].disk.download is None


def test_a_snapshot_takes_the_place_of_the_log_and_brings_its_voters() -> None:
    # Q11
    cluster = Cluster(3, 1)
    cluster.elect(1)
    cluster.add_voter(voter_of(4))
    cluster.settle()
    cluster.propose("a", "b")
    cluster.settle()
    cluster.drop_log(1, cluster.snapshot(1))
    node = cluster.wipe(2)
    cluster.until(lambda: node.core.high_watermark == cluster.nodes[1].core.high_watermark)
    assert node.disk.start_offset == cluster.nodes[1].disk.start_offset
    assert node.core.voters == voters_of(1, 2, 3, 4)
    assert not node.core.is_voter, "it is another disk"


def test_a_leader_loads_no_snapshot() -> None:
    # Q11
    cluster = Cluster(1)
    core = cluster.nodes[1].core
    for is_sound in (True, False):
        with pytest.raises(InvariantViolation, match="nobody waits for"):
            core.snapshot_checked(SNAPSHOT, 0, is_sound=is_sound)
    with pytest.raises(InvariantViolation, match="nobody waits for"):
        core.snapshot_loaded(SNAPSHOT, voters_of(1), 0)
