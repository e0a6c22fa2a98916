import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kraftlog.types import Uuid
from quorum import snapshots as snapshots_module
from quorum.config import ServerConfig
from quorum.observer import MetadataObserver, ObserverConfig, open_observer
from quorum.snapshots import SnapshotPolicy
from tests.loops import run, until
from tests.quorum.cells import CALM, Cell, cell
from tests.quorum.machines import Recorder


def config_for(made: Cell, directory: Path) -> ObserverConfig:
    directory.mkdir(exist_ok=True)
    return ObserverConfig(
        directory=str(directory),
        cluster_id=made.cluster_id,
        node_id=1,
        directory_id=Uuid(b"disk of broker 1"),
        peers=(made.configs[101].listen,),
        timing=CALM,
    )


@asynccontextmanager
async def observing(config: ObserverConfig, machine: Recorder) -> AsyncIterator[MetadataObserver]:
    async with open_observer(config, machine) as observer, asyncio.TaskGroup() as tasks:
        task = tasks.create_task(observer.run())
        yield observer
        task.cancel()


def test_a_broker_follows_the_log_and_makes_nobody_wait(tmp_path: Path) -> None:  # R6
    async def story() -> None:
        async with cell(tmp_path) as three:
            machine = Recorder()
            async with observing(config_for(three, tmp_path / "b1"), machine) as observer:
                offset = await three.propose(b"a", b"b")
                await observer.wait_applied(offset + 2)
                assert machine.values == [b"a", b"b"]
                leader = await three.leader()
                assert observer.leader is not None
                assert observer.leader.key == leader.identity.key
                assert observer.epoch == leader.node.core.epoch
                assert observer.applied_offset == observer.high_watermark == offset + 2
                assert observer.end_offset >= observer.high_watermark
                assert {each.key.node_id for each in observer.controllers} == {101, 102, 103}
                voters = leader.node.core.voters.voters
                assert 1 not in {each.key.node_id for each in voters}

    run(story())


def test_it_starts_from_its_own_disk(tmp_path: Path) -> None:  # R6
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            config = config_for(one, tmp_path / "b1")
            async with observing(config, Recorder()) as observer:
                offset = await one.propose(b"a")
                await observer.wait_applied(offset + 1)
            await one.propose(b"b")
            machine = Recorder()
            async with open_observer(config, machine) as observer:
                assert observer.end_offset == offset + 1  # nothing was fetched yet
            async with observing(config, machine) as observer:
                await observer.wait_applied(offset + 2)
                assert machine.values == [b"a", b"b"]

    run(story())


def test_it_finds_a_new_leader(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            machine = Recorder()
            config = replace(
                config_for(three, tmp_path / "b1"),
                peers=tuple(each.listen for each in three.configs.values()),
            )
            async with observing(config, machine) as observer:
                await observer.wait_applied(await three.propose(b"a") + 1)
                old = await three.leader()
                await three.stop(old.identity.key.node_id)
                await observer.wait_applied(await three.propose(b"b") + 1)
                assert machine.values == [b"a", b"b"]
                new = await three.leader()
                await until(lambda: observer.epoch == new.node.core.epoch)

    run(story())


def test_it_writes_snapshots_of_its_own_and_loads_the_leaders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots_module, "CHECK_SECONDS", 0.02)

    async def story() -> None:
        policy = SnapshotPolicy(log_bytes=3_000, interval_ms=0, retention_bytes=4_000)
        template = ServerConfig(directory="", timing=CALM, snapshots=policy)
        async with cell(tmp_path, nodes=1, template=template) as one:
            leader = await one.leader()
            while leader.node.core.log.start_offset == 0:
                await one.propose(bytes(500))
            config = replace(config_for(one, tmp_path / "b1"), snapshots=policy)
            machine = Recorder()
            async with observing(config, machine) as observer:
                await observer.wait_applied(leader.node.core.high_watermark)
                assert any(told.startswith("snapshot ") for told in machine.told)
                while not own_snapshots(tmp_path / "b1", machine):
                    await observer.wait_applied(await one.propose(bytes(500)) + 1)

    run(story())


def own_snapshots(directory: Path, machine: Recorder) -> list[str]:
    """Those on disk that were not loaded from the leader."""
    loaded = {told.split()[1] for told in machine.told if told.startswith("snapshot ")}
    names = [path.stem for path in (directory / "__cluster_metadata-0").glob("*.checkpoint")]
    ids = [f"{int(end)}-{int(epoch)}" for end, epoch in (name.split("-") for name in names)]
    return [each for each in ids if each not in loaded]
