"""A voter that has lost its disk makes room; one that is alive does not."""

import asyncio
from pathlib import Path

import pytest

from kraftctl.exit_codes import Guarded, NotFound
from kraftctl.replace import make_room
from tests.loops import run
from tests.quorum.cells import cell


def test_only_a_voter_that_is_gone_makes_room(tmp_path: Path) -> None:  # Q14
    async def story() -> None:
        async with cell(tmp_path) as three:
            lost = (await three.follower()).identity.key.node_id
            seed = (await three.leader()).address.endpoint
            empty = str(tmp_path / "new")

            async def room(node_id: int, directory: str) -> str:
                return await asyncio.to_thread(make_room, seed, node_id, directory)

            with pytest.raises(NotFound, match="77 is no voter"):
                await room(77, empty)
            with pytest.raises(Guarded, match="is alive"):
                await room(lost, empty)
            await three.stop(lost)
            assert "nothing is replaced" in await room(lost, three.configs[lost].directory)
            assert "takes its place" in await room(lost, empty)
            voters = (await three.leader()).node.core.voters.voters
            assert lost not in {each.key.node_id for each in voters}

    run(story())
