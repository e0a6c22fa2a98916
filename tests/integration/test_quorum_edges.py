"""Processes at their edges: dials that are cut by the resolver, and a rule that does not hold."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlog.types import Uuid
from quorum.client import QuorumClient
from quorum.local import LocalQuorum, environment, free_port

pytestmark = pytest.mark.slow

ARGUMENTS = ("--profile", "fast", "--state", "journal")


async def propose(quorum: LocalQuorum, value: bytes) -> int:
    async with QuorumClient(quorum.endpoints[:2], timeout_ms=30_000) as client:
        leader = await client.find_leader()
        endpoint = leader.header.leader.endpoint
        return await client.propose(endpoint, Uuid.parse(quorum.cluster_id), [value])


async def end_of(quorum: LocalQuorum, node_id: int) -> int:
    async with QuorumClient([], timeout_ms=30_000) as client:
        return (await client.describe(quorum.endpoint(node_id))).end_offset


async def catches_up(quorum: LocalQuorum, node_id: int, end_offset: int) -> None:
    async with asyncio.timeout(60):
        while await end_of(quorum, node_id) < end_offset:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


def test_every_dial_goes_through_the_resolver(tmp_path: Path) -> None:
    table = tmp_path / "resolve.json"
    table.write_text("{}")
    with LocalQuorum(str(tmp_path / "cluster"), arguments=ARGUMENTS) as quorum:
        nowhere = f"127.0.0.1:{free_port()}"
        cut = dict.fromkeys(quorum.endpoints[:2], nowhere)
        table.write_text(json.dumps(cut))
        quorum.nodes[103].environment = {"KRAFTLOG_RESOLVE": str(table)}
        quorum.start()
        offset = asyncio.run(propose(quorum, b"without the third"))
        assert asyncio.run(end_of(quorum, 103)) == 0  # it can be reached, and reaches nobody
        table.write_text("{}")
        asyncio.run(catches_up(quorum, 103, offset + 1))


BROKEN = """
import sys
from kraftlog._check import invariant
from quorum.cli import main
from quorum.driver import Driver

def apply(self):
    invariant(False, "planted", applied=self.applier.applied_offset)

Driver.apply = apply
sys.exit(main(sys.argv[1:]))
"""


def test_a_broken_invariant_ends_the_process_with_its_facts(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    place = ["--node-id", "1", "--directory", f"{tmp_path}/c1", "--listen", listen]
    ended = subprocess.run(
        [sys.executable, "-P", "-c", BROKEN, "form", *place, *ARGUMENTS],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 70
    assert "planted: applied=0" in ended.stderr
    assert "a rule of this program does not hold" in ended.stderr
