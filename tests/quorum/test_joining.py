import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kraftlog.clock import SystemClock
from quorum import joining
from quorum.directory import format_directory
from quorum.joining import NodeIdTaken, become_voter
from quorum.journal import JournalApplication
from quorum.server import open_controller
from storage.files import OsFiles
from tests.loops import run
from tests.quorum.cells import Cell, cell, configs_for, journal


def prepare(one: Cell, directory: Path, node_id: int) -> None:
    """An empty directory for a newcomer that knows one address."""
    config = configs_for(directory, [node_id])[node_id]
    peers = (one.configs[101].listen,)
    one.configs[node_id] = replace(config, peers=peers)
    format_directory(
        OsFiles(), config.directory, SystemClock(), cluster_id=one.cluster_id, node_id=node_id
    )


def test_newcomers_catch_up_and_become_voters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "TELL_MS", 0)
    told: list[str] = []

    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            for number in range(50):
                await one.propose(b"%d" % number)
            for node_id in (102, 103):
                prepare(one, tmp_path, node_id)
                server = await one.start(node_id)
                assert not server.node.core.is_voter
                await become_voter(server, str, told.append)
                assert server.node.core.is_voter
            assert any(", that of leader 101 at " in each for each in told), told
            leader = await one.leader()
            assert [each.key.node_id for each in leader.node.core.voters.voters] == [101, 102, 103]
            await one.propose(b"with three")
            await one.settle()
            assert {journal(server).records for server in one.servers.values()} == {51}
            # All three count from now on: with one of them gone the other two go on.
            await one.stop(leader.identity.key.node_id)
            await one.propose(b"with two")

    run(story())


def test_two_at_once_wait_for_each_other(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            servers = []
            for node_id in (102, 103):
                prepare(one, tmp_path, node_id)
                servers.append(await one.start(node_id))
            await asyncio.gather(*(become_voter(server, str) for server in servers))
            assert len((await one.leader()).node.core.voters) == 3

    run(story())


def test_a_node_id_of_another_disk_is_refused(tmp_path: Path) -> None:  # Q14
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            prepare(one, tmp_path, 102)
            await become_voter(await one.start(102), str)
            await one.stop(102)
            # The disk is lost: the same id comes back under a new directory id.
            prepare(one, tmp_path / "new", 102)
            config = one.configs[102]
            async with open_controller(config, lambda _: JournalApplication()) as server:

                async def join(_: object) -> None:
                    with pytest.raises(NodeIdTaken, match="node 102 is a voter already") as caught:
                        await become_voter(server, str)
                    assert "kraftctl quorum remove 102:" in caught.value.hint
                    server.stop()

                await server.run(join)

    run(story())
