"""Three controller processes, killed and started again while callers propose.

Whatever was acknowledged is in all three logs, once, at the offset that was told, in order.
"""

import asyncio
import logging
import random
from pathlib import Path

import pytest

from kraftlog.errors import AmbiguousError, KraftError, NotLeaderError
from kraftlog.types import Uuid
from quorum.client import Description, QuorumClient
from quorum.local import LocalQuorum
from quorum.proposer import Proposer
from tests.integration.logs import FoundLog, read_log
from tests.integration.workload import Workload

logger = logging.getLogger(__name__)

ARGUMENTS = ("--profile", "fast", "--state", "journal")
ACKS_BETWEEN = 50


async def leader_of(quorum: LocalQuorum) -> int:
    async with QuorumClient(quorum.endpoints, timeout_ms=30_000) as client:
        return (await client.find_leader()).header.leader.key.node_id


async def kill_and_restart(quorum: LocalQuorum, load: Workload, dice: random.Random) -> None:
    """One node dies, and the others go on; every second time it is the leader."""
    node_id = dice.choice(list(quorum.nodes))
    if dice.random() < 0.5:
        node_id = await leader_of(quorum)
    quorum.nodes[node_id].kill()
    await load.wait_acks(ACKS_BETWEEN)
    await asyncio.to_thread(quorum.restart, node_id)
    await load.wait_acks(ACKS_BETWEEN)


async def all_have(quorum: LocalQuorum, end_offset: int) -> None:
    async with QuorumClient(quorum.endpoints) as client, asyncio.timeout(60):
        for endpoint in quorum.endpoints:
            while (await client.describe(endpoint)).high_watermark < end_offset:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def story(quorum: LocalQuorum, kills: int, seed: int) -> Workload:
    dice = random.Random(seed)
    load = Workload(quorum.endpoints, Uuid.parse(quorum.cluster_id))
    async with load.running():
        await load.wait_acks(ACKS_BETWEEN)
        for _ in range(kills):
            await kill_and_restart(quorum, load, dice)
    await all_have(quorum, max(load.acked.values()) + 1)
    return load


def judge(load: Workload, logs: list[FoundLog]) -> None:
    for log in logs:
        values = list(log.records.values())
        assert len(set(values)) == len(values), "a record is there twice"
        for value, offset in load.acked.items():
            assert log.records.get(offset) == value, "an acknowledged record is not there"
        assert not load.refused & set(values), "a record that was refused is there"
        assert set(values) <= set(load.acked) | load.unknown
    for offsets in load.per_caller.values():
        assert offsets == sorted(offsets), "records of one caller are out of order"
    judge_leaders(logs)


def judge_leaders(logs: list[FoundLog]) -> None:
    """One leader in an epoch, and each new one has a higher epoch."""  # Q1
    shortest = min(log.end_offset for log in logs)
    committed = [
        {offset: value for offset, value in log.records.items() if offset < shortest}
        for log in logs
    ]
    assert all(each == committed[0] for each in committed)  # Q4
    for log in logs:
        epochs = [epoch for epoch, _ in log.leaders]
        assert epochs == sorted(set(epochs))
    known: dict[int, int] = {}
    for log in logs:
        for epoch, leader in log.leaders:
            assert known.setdefault(epoch, leader) == leader


def survive(directory: Path, kills: int, seed: int) -> None:
    with LocalQuorum(str(directory), arguments=ARGUMENTS).start() as quorum:
        load = asyncio.run(story(quorum, kills, seed))
        assert quorum.stop() == [0, 0, 0]
    logs = [read_log(seat.directory) for seat in quorum.seats]
    judge(load, logs)
    logger.info(
        "%d kills: %d acknowledged, %d unknown, %d leaders",
        kills,
        len(load.acked),
        len(load.unknown),
        len(logs[0].leaders),
    )
    for seat in quorum.seats:
        assert "Traceback" not in Path(f"{seat.directory}.log").read_text()  # V3


# R3, R6: the metadata is one log that a quorum keeps, with one leader at a time
@pytest.mark.slow
def test_acknowledged_records_survive_five_kills(tmp_path: Path) -> None:
    survive(tmp_path, kills=5, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_acknowledged_records_survive_fifty_kills(tmp_path: Path) -> None:
    survive(tmp_path, kills=50, seed=2)


async def depose(quorum: LocalQuorum) -> tuple[Uuid, bytes, bytes]:
    """A leader sleeps through its own election out of office, and is asked to lead on."""
    cluster_id = Uuid.parse(quorum.cluster_id)
    old = await leader_of(quorum)
    sleeper = Proposer(quorum.endpoint(old), cluster_id)
    others = [each for each in quorum.endpoints if each != quorum.endpoint(old)]
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(sleeper.run())
        await sleeper.propose([b"while it led"])
        quorum.nodes[old].pause()
        late = tasks.create_task(outcome(sleeper, b"to the old one"))
        async with QuorumClient(others, timeout_ms=30_000) as client:
            new = await client.find_leader()
            while new.header.leader.key.node_id == old:
                new = await client.find_leader()
            endpoint = new.header.leader.endpoint
            offset = await client.propose(endpoint, cluster_id, [b"to the new one"])
        quorum.nodes[old].resume()
        error = await late
        assert isinstance(error, AmbiguousError | NotLeaderError)
        running.cancel()
    await committed_everywhere(quorum, offset)
    return cluster_id, b"to the new one", b"to the old one"


async def committed_everywhere(quorum: LocalQuorum, offset: int) -> None:
    """Until all three know that this record is committed."""
    async with QuorumClient(quorum.endpoints) as client, asyncio.timeout(60):
        while True:
            answers = [answer for _, answer in await client.describe_all(quorum.endpoints)]
            known = [each for each in answers if isinstance(each, Description)]
            if sum(each.high_watermark > offset for each in known) == len(quorum.endpoints):
                return
            await asyncio.sleep(0.05)


async def outcome(proposer: Proposer, value: bytes) -> KraftError | None:
    try:
        await proposer.propose([value], timeout_ms=30_000)
    except KraftError as error:
        return error
    return None


@pytest.mark.slow
def test_a_leader_that_was_replaced_in_its_sleep_commands_nothing(tmp_path: Path) -> None:  # R3
    with LocalQuorum(str(tmp_path), arguments=ARGUMENTS).start() as quorum:
        _, kept, ignored = asyncio.run(depose(quorum))
        assert quorum.stop() == [0, 0, 0]
    for seat in quorum.seats:
        values = set(read_log(seat.directory).records.values())
        assert kept in values
        assert ignored not in values
