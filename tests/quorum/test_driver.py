"""The driver with its outlet in the hands of the test, which says when a flush is done."""

import pytest

from kraftlog.clock import ManualClock
from kraftlog.errors import NotLeaderError, RecordTooLarge, StorageError
from kraftlog.types import Buffer
from quorum import snapshot_file
from quorum.core.config import RaftConfig
from quorum.core.messages import (
    AddVoterRequest,
    BeginQuorumEpochRequest,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    Refusal,
    ReplicaRequest,
    Reply,
    SnapshotId,
    VoteReply,
    VoteRequest,
    VoterSet,
)
from quorum.driver import Driver
from quorum.store import Download, Store, format_store
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk
from tests.quorum.machines import Recorder
from tests.quorum.samples import CLUSTER, key, voter, voters

ME, PEER = 1, 2


class Bench:
    """A node whose flushes, requests and replies wait for the test."""

    def __init__(self, members: VoterSet, disk: ModelDisk | None = None) -> None:
        self.disk = disk or ModelDisk()
        if disk is None:
            self.disk.make_dir("/n")
            self.disk.sync_dir("/")
            format_store(self.disk, "/n", ManualClock(), members)
        self.sent: list[tuple[int, ReplicaRequest]] = []
        self.replies: dict[int, tuple[Reply, Buffer]] = {}
        self.flushes = 0
        self.checks: list[Download] = []
        self.done: dict[int, int | Refusal] = {}
        self.clock = ManualClock()
        self.machine = Recorder()
        self.store = Store(self.disk, "/n", self.clock, LogConfig(delete=False))
        config = RaftConfig(cluster_id=CLUSTER, key=key(ME), endpoint="c1:9093")
        self.driver = Driver(
            config, self.store, self.machine, outlet=self, clock=self.clock, draw=lambda _: 0
        )

    # -- outlet

    def send(
        self,
        request_id: int,
        endpoint: str,  # noqa: ARG002 - there is one peer
        request: ReplicaRequest,
        timeout_ms: int,  # noqa: ARG002 - and it answers when the test wants it to
    ) -> None:
        self.sent.append((request_id, request))

    def reply(self, token: int, reply: Reply, records: Buffer) -> None:
        self.replies[token] = (reply, records)

    def start_flush(self) -> None:
        self.flushes += 1

    def start_check(self, download: Download) -> None:
        self.checks.append(download)

    def proposed(self, token: int, offset: int) -> None:
        self.done[token] = offset

    def proposal_failed(self, token: int, error: Refusal) -> None:
        self.done[token] = error

    def read_ready(self, token: int) -> None:
        self.done[token] = len(self.machine.values)

    def read_failed(self, token: int, error: Refusal) -> None:
        self.done[token] = error

    # -- what the test does

    def flush(self) -> None:
        self.driver.flush_done(self.driver.flush())
        while self.driver.applier.has_work:
            self.driver.apply()

    def tick(self, ms: int) -> None:
        self.clock.advance(ms)
        self.driver.tick()

    def elect(self) -> None:
        """Of two voters: win pre-votes and votes."""
        self.tick(5_000)
        for _ in range(2):
            request_id, request = self.sent.pop()
            assert isinstance(request, VoteRequest)
            self.driver.handle_reply(request_id, VoteReply(epoch=request.epoch, leader=None))
        assert self.driver.core.is_leader

    def fetch(self, token: int, offset: int) -> None:
        core = self.driver.core
        request = FetchRequest(
            cluster_id=CLUSTER,
            sender=key(PEER),
            recipient=key(ME),
            epoch=core.epoch,
            offset=offset,
            last_epoch=core.epoch if offset else 0,
            high_watermark=0,
            max_wait_ms=100,
            max_bytes=1 << 20,
        )
        self.driver.handle_request(token, request)


def sole() -> Bench:
    bench = Bench(voters(ME))
    bench.flush()
    return bench


def test_a_sole_voter_leads_once_its_first_records_are_flushed() -> None:
    bench = Bench(voters(ME))
    assert bench.driver.core.is_leader
    assert bench.driver.core.high_watermark == 0
    bench.flush()
    assert bench.driver.core.high_watermark == 2  # leader change and voters
    assert bench.machine.told[-1] == "leader 1 in 1"


def test_nothing_is_acknowledged_before_its_flush() -> None:
    bench = sole()
    bench.driver.propose([(7, [b"a", b"b"]), (8, [b"c"])], epoch=1)
    assert bench.done == {}
    bench.flush()
    assert bench.done == {7: 2, 8: 4}
    assert bench.machine.values == [b"a", b"b", b"c"]


def test_one_flush_at_a_time_and_the_next_takes_all() -> None:
    bench = sole()
    before = bench.flushes
    bench.driver.propose([(1, [b"a"])], epoch=1)
    assert bench.flushes == before + 1
    end = bench.driver.flush()
    for token in range(2, 50):
        bench.driver.propose([(token, [b"x"])], epoch=1)
    assert bench.flushes == before + 1  # one runs: the others wait for it
    bench.driver.flush_done(end)
    assert set(bench.done) == {1}
    assert bench.flushes == before + 2
    bench.flush()
    assert set(bench.done) == set(range(1, 50))
    assert bench.flushes == before + 2


def test_a_lost_leadership_fails_proposals_as_unknown() -> None:
    bench = Bench(voters(ME, PEER))
    bench.elect()
    bench.flush()
    bench.driver.propose([(7, [b"a"])], epoch=bench.driver.core.epoch)
    vote = VoteRequest(
        cluster_id=CLUSTER,
        sender=key(PEER),
        recipient=key(ME),
        epoch=9,
        last_epoch=1,
        end_offset=0,
        pre_vote=False,
    )
    bench.driver.handle_request(1, vote)
    assert bench.done == {7: Refusal.LEADERSHIP_LOST}
    assert bench.store.election.epoch == 9  # durable before the reply
    with pytest.raises(NotLeaderError):
        bench.driver.propose([(8, [b"b"])], epoch=9)


def test_followers_get_what_is_not_flushed_and_count_themselves() -> None:
    bench = Bench(voters(ME, PEER))
    bench.elect()
    epoch = bench.driver.core.epoch
    bench.fetch(1, 0)
    reply, records = bench.replies[1]
    assert isinstance(reply, FetchReply)
    assert records  # leader change and voters, not flushed here yet
    bench.driver.propose([(7, [b"a"])], epoch=epoch)
    bench.fetch(2, 2)
    bench.fetch(3, 3)
    assert bench.done == {}  # we have not flushed it ourselves
    bench.flush()
    assert bench.done == {7: 2}


def test_a_proposal_for_another_epoch_changes_nothing() -> None:
    bench = sole()
    end = bench.driver.core.log.end_offset
    with pytest.raises(NotLeaderError):
        bench.driver.propose([(1, [b"a"])], epoch=7)
    with pytest.raises(RecordTooLarge, match="over 2097152"):
        bench.driver.propose([(1, [bytes(3 << 20)])], epoch=1)
    assert bench.driver.core.log.end_offset == end == bench.store.log.end_offset


def test_a_disk_that_takes_no_more_is_not_hidden() -> None:
    bench = sole()
    bench.disk.capacity_bytes = 0
    with pytest.raises(StorageError, match="cannot append"):
        bench.driver.propose([(1, [b"a" * 1_000])], epoch=1)
    assert bench.done == {}


def test_a_flush_of_what_was_cut_meanwhile_is_made_again() -> None:
    leader = Bench(voters(ME, PEER))
    leader.elect()
    bench = leader
    for token in range(5):
        bench.driver.propose([(token, [b"x"])], epoch=bench.driver.core.epoch)
    end = bench.driver.flush()
    core = bench.driver.core
    core.log.truncate(3)  # as a follower's core would while the flush runs
    bench.store.truncate(3)
    before = bench.flushes
    bench.driver.flush_done(end)
    assert bench.flushes == before + 1
    bench.driver.flush_done(bench.driver.flush())
    assert core.log.flushed_offset == core.log.end_offset == 3


def test_reads_wait_for_a_record_of_their_own_time() -> None:  # M2
    bench = sole()
    bench.driver.propose([(1, [b"a"])], epoch=1)
    bench.driver.read(9)
    assert 9 not in bench.done
    bench.flush()
    assert bench.done[9] == 1
    other = Bench(voters(ME, PEER))
    other.driver.read(9)
    assert other.done == {9: Refusal.NOT_LEADER}


THEIRS = SnapshotId(100, 4)


def downloaded() -> Bench:
    """A follower with all bytes of its leader's snapshot, which it has yet to check."""
    bench = Bench(voters(ME, PEER))
    begin = BeginQuorumEpochRequest(
        cluster_id=CLUSTER, sender=key(PEER), recipient=key(ME), epoch=5, endpoint="c2:9093"
    )
    bench.driver.handle_request(1, begin)
    offer = FetchReply(epoch=5, leader=voter(PEER), snapshot=THEIRS)
    bench.driver.handle_reply(bench.sent[-1][0], offer)
    disk = ModelDisk()
    snapshot_file.write_snapshot(disk, "/", THEIRS, voters(ME, PEER), [b"state"], timestamp=1)
    data = disk.read_bytes(f"/{snapshot_file.snapshot_name(THEIRS)}")
    chunk = FetchSnapshotReply(
        epoch=5, leader=voter(PEER), snapshot=THEIRS, size=len(data), data=data
    )
    bench.driver.handle_reply(bench.sent[-1][0], chunk)
    return bench


def test_a_downloaded_snapshot_takes_effect_once_it_is_checked() -> None:
    bench = downloaded()
    (check,) = bench.checks
    assert bench.driver.core.log.end_offset == 0
    bench.driver.check_download(check)
    assert bench.driver.core.log.end_offset == 0
    bench.driver.check_done(check)
    assert bench.store.log.start_offset == bench.driver.core.log.start_offset == 100
    bench.driver.apply()
    assert bench.machine.values == [b"state"]
    assert isinstance(bench.sent[-1][1], FetchRequest)


def test_a_check_of_what_was_given_up_changes_nothing() -> None:
    bench = downloaded()
    bench.driver.check_download(bench.checks[0])
    begin = BeginQuorumEpochRequest(
        cluster_id=CLUSTER, sender=key(PEER), recipient=key(ME), epoch=6, endpoint="c2:9093"
    )
    bench.driver.handle_request(2, begin)
    bench.driver.check_done(bench.checks[0])
    assert bench.driver.core.log.end_offset == 0
    assert not [name for name in bench.disk.list_dir(bench.store.directory) if "part" in name]


def write_snapshot(bench: Bench) -> SnapshotId:
    snapshot = bench.driver.applier.snapshot_id
    bench.store.write_snapshot(snapshot, bench.driver.core.voters, bench.machine.dump())
    bench.driver.snapshot_written(snapshot)
    return snapshot


def fetch_chunk(
    bench: Bench, token: int, snapshot: SnapshotId, position: int
) -> FetchSnapshotReply:
    request = FetchSnapshotRequest(
        cluster_id=CLUSTER,
        sender=key(PEER),
        recipient=key(ME),
        epoch=1,
        snapshot=snapshot,
        position=position,
        max_bytes=300,
    )
    bench.driver.handle_request(token, request)
    reply, _ = bench.replies[token]
    assert isinstance(reply, FetchSnapshotReply)
    return reply


def test_a_snapshot_is_served_in_chunks() -> None:
    bench = sole()
    bench.driver.propose([(1, [b"a" * 1_000])], epoch=1)
    bench.flush()
    snapshot = write_snapshot(bench)
    taken, size = b"", 1
    for token in range(100, 1_000):
        if len(taken) == size:
            break
        chunk = fetch_chunk(bench, token, snapshot, len(taken))
        assert chunk.refusal is None
        taken, size = taken + bytes(chunk.data), chunk.size
    beyond = fetch_chunk(bench, 2_000, snapshot, size)
    assert beyond.refusal is Refusal.POSITION_OUT_OF_RANGE
    bench.driver.drop_log_below(snapshot)
    assert bench.store.log.start_offset == snapshot.end_offset


def test_a_snapshot_that_was_overtaken_is_thrown_away() -> None:
    bench = sole()
    bench.driver.propose([(1, [b"a"])], epoch=1)
    bench.flush()
    old = bench.driver.applier.snapshot_id
    bench.store.write_snapshot(old, bench.driver.core.voters, [])
    bench.driver.propose([(2, [b"b"])], epoch=1)
    bench.flush()
    newer = write_snapshot(bench)
    bench.driver.drop_log_below(newer)
    bench.driver.snapshot_written(old)
    assert bench.driver.core.log.snapshots == [newer]
    names = bench.disk.list_dir(bench.store.directory)
    assert len([name for name in names if name.endswith(".checkpoint")]) == 2  # and the bootstrap


def test_a_restart_goes_on_where_it_was() -> None:
    bench = sole()
    bench.driver.propose([(1, [b"a"])], epoch=1)
    bench.flush()
    bench.disk.restart(seed=5)
    again = Bench(voters(ME), bench.disk)
    again.flush()
    assert again.machine.values == [b"a"]
    assert again.driver.core.epoch > 1  # never a second time in an epoch that it led


def test_a_request_of_an_operator_is_answered() -> None:
    bench = sole()
    bench.driver.handle_request(5, AddVoterRequest(cluster_id=CLUSTER, voter=voter(PEER)))
    reply, _ = bench.replies[5]
    assert reply.refusal is Refusal.NOT_CAUGHT_UP
