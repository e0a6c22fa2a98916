import asyncio
from pathlib import Path

import pytest

from kraftlog.clock import ManualClock
from kraftlog.errors import StorageError
from quorum import snapshots as module
from quorum.config import ServerConfig
from quorum.core.messages import SnapshotId
from quorum.node import RaftNode
from quorum.snapshots import SnapshotKeeper, SnapshotPolicy
from storage.log_config import LogConfig
from tests.loops import run
from tests.quorum.cells import CALM, cell, journal

NEVER = SnapshotPolicy(log_bytes=1 << 40, interval_ms=0)
SMALL = LogConfig(segment_bytes=4_000, file_delete_delay_ms=0, delete=False)


def template(policy: SnapshotPolicy) -> ServerConfig:
    return ServerConfig(directory="", timing=CALM, snapshots=policy, log=SMALL)


async def write(keeper: SnapshotKeeper) -> SnapshotId:
    snapshot = await keeper.write()
    assert snapshot is not None
    return snapshot


def keeper_of(node: RaftNode, policy: SnapshotPolicy, clock: ManualClock) -> SnapshotKeeper:
    return SnapshotKeeper(node, policy, clock)


def test_a_snapshot_is_due_by_bytes_or_by_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1, template=template(NEVER)) as one:
            node = (await one.leader()).node
            await one.settle()
            clock = ManualClock()
            keeper = keeper_of(node, SnapshotPolicy(log_bytes=5_000, interval_ms=60_000), clock)
            await write(keeper)
            assert not keeper.is_due()
            clock.advance(60_000)
            assert not keeper.is_due()  # nothing has changed
            await one.propose(b"x")
            assert keeper.is_due()
            await write(keeper)
            assert not keeper.is_due()
            await one.propose(bytes(6_000))
            assert keeper.is_due()
            assert await write(keeper) == node.driver.applier.snapshot_id
            assert await keeper.write() is None  # there is one already

    run(story())


def test_the_log_goes_by_bytes_and_one_snapshot_stays(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1, template=template(NEVER)) as one:
            node = (await one.leader()).node
            policy = SnapshotPolicy(retention_bytes=1, retention_ms=-1)
            keeper = keeper_of(node, policy, ManualClock())
            await keeper.retire()
            assert node.core.log.start_offset == 0  # without a snapshot all stays
            for _ in range(3):
                await one.propose(bytes(5_000))
                await write(keeper)
            newest = node.core.log.snapshots[-1]
            await keeper.retire()
            assert node.core.log.snapshots == [newest]
            assert node.core.log.start_offset == newest.end_offset
            names = [path.name for path in (tmp_path / "c101" / "__cluster_metadata-0").iterdir()]
            assert not [name for name in names if name.endswith(".deleted")]
            await one.propose(b"goes on")

    run(story())


def test_the_log_goes_by_age(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1, template=template(NEVER)) as one:
            node = (await one.leader()).node
            clock = ManualClock(wall_ms=0)
            keeper = keeper_of(node, SnapshotPolicy(retention_bytes=-1, retention_ms=1_000), clock)
            for _ in range(2):
                await one.propose(b"x")
                await write(keeper)
            newest = node.core.log.snapshots[-1]
            await keeper.retire()
            assert node.core.log.start_offset == 0
            clock.jump_wall(node.store.snapshot_timestamp(newest) + 1_001)
            await keeper.retire()
            assert node.core.log.start_offset == newest.end_offset

    run(story())


def test_a_snapshot_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1, template=template(NEVER)) as one:
            node = (await one.leader()).node
            keeper = keeper_of(node, NEVER, ManualClock())
            await one.propose(b"x")
            directory = tmp_path / "c101" / "__cluster_metadata-0"
            end = (await one.leader()).node.core.high_watermark
            await node.wait_applied(end)
            (directory / f"{end:020d}-0000000001.checkpoint.part").mkdir()
            assert await keeper.write() is None
            assert await one.propose(b"y") > 0
            assert keeper.written == 0

    run(story())


def test_a_state_with_holes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log behind a snapshot goes: what is not in there is gone for good."""

    def refuse() -> list[bytes]:
        raise StorageError("2 records are left out")

    async def story() -> None:
        async with cell(tmp_path, nodes=1, template=template(NEVER)) as one:
            node = (await one.leader()).node
            clock = ManualClock()
            keeper = keeper_of(node, SnapshotPolicy(interval_ms=60_000), clock)
            await one.propose(b"x")
            with monkeypatch.context() as patched:
                patched.setattr(node.machine, "dump", refuse)
                clock.advance(60_000)
                assert keeper.is_due()
                assert await keeper.write() is None
            assert not keeper.is_due()  # it does not try again every second
            assert "2 records are left out" in caplog.text
            assert node.core.log.snapshots == []
            await one.propose(b"y")
            await write(keeper)

    run(story())


def test_a_newcomer_loads_the_snapshot_of_the_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # R6
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.02)

    async def story() -> None:
        policy = SnapshotPolicy(log_bytes=20_000, interval_ms=0, retention_bytes=30_000)
        async with cell(tmp_path, nodes=3, template=template(policy)) as three:
            await three.stop(103)
            leader = await three.leader()
            while leader.node.core.log.start_offset == 0:
                await three.propose(bytes(3_000))
            late = await three.start(103)
            end = leader.node.core.high_watermark
            await late.node.wait_applied(end)
            assert late.node.core.log.start_offset > 0
            assert journal(late).digest == journal(leader).digest
            await three.stop(103)
            again = await three.start(103)
            await again.node.wait_applied(end)
            assert journal(again).digest == journal(leader).digest

    run(story())


def test_written_while_proposals_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # Q11
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.02)

    async def story() -> None:
        policy = SnapshotPolicy(log_bytes=1_000, interval_ms=0)
        async with cell(tmp_path, nodes=1, template=template(policy)) as one:
            node = (await one.leader()).node
            while len(node.core.log.snapshots) < 2:
                await one.propose(bytes(500))
                await asyncio.sleep(0)
            await one.settle()
            before = journal(one.servers[101])
            await one.stop(101)
            await one.start(101)
            await one.settle()
            assert journal(await one.leader()).digest == before.digest

    run(story())


def test_age_and_size_of_the_newest(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1, template=template(NEVER)) as one:
            node = (await one.leader()).node
            await one.settle()
            clock = ManualClock()
            keeper = keeper_of(node, NEVER, clock)
            clock.advance(7_000)
            assert (keeper.age_seconds(), keeper.newest_bytes()) == (7.0, 0)  # there is none
            newest = await write(keeper)
            written_ms = node.store.snapshot_timestamp(newest)
            clock.jump_wall(60_000 + written_ms - clock.wall_ms())
            assert keeper.age_seconds() == 60.0
            (path,) = (tmp_path / "c101").glob(f"*/*{newest.end_offset}-*.checkpoint")
            assert keeper.newest_bytes() == path.stat().st_size

    run(story())
