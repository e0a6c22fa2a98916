"""Three real controllers that govern a cluster of scripted brokers, and lose their leader again and
again: every acknowledged operation is there, once, on all three.
"""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.scripted import ScriptedClient, raise_error, scripted_brokers
from kraftlog.clock import SystemClock
from kraftlog.record_batch import RecordBatch, read_batches
from kraftlog.rpc import controller_pb2 as pb
from metadata_log.codec import decode_record
from metadata_log.image import EMPTY, Image
from metadata_log.records import Record, RemoveTopic, TopicRecord
from metadata_log.replay import load, replay_all
from metadata_log.snapshot import digest
from quorum.client import Description, QuorumClient
from quorum.local import LocalQuorum
from quorum.store import Store
from storage.files import OsFiles


def create(name: str) -> pb.ControllerRequest:
    topic = pb.NewTopic(name=name, partitions=3, replication_factor=3)
    return pb.ControllerRequest(create_topics=pb.CreateTopicsRequest(topics=[topic]))


def delete(name: str) -> pb.ControllerRequest:
    return pb.ControllerRequest(
        delete_topics=pb.DeleteTopicsRequest(topics=[pb.TopicRef(name=name)])
    )


class Workload:
    """Creates topics, deletes every third; remembers what was acknowledged."""

    def __init__(self, endpoints: list[str], name: str) -> None:
        self._client = ScriptedClient(endpoints)
        self._name = name
        self.created: dict[str, bytes] = {}
        self.deleted: set[str] = set()
        self.is_over = False

    async def run(self) -> None:
        number = 0
        while not self.is_over:
            name = f"{self._name}-{number}"
            reply = await self._client.ask(create(name))
            raise_error(reply)
            raise_error(reply.create_topics.topics[0])
            self.created[name] = reply.create_topics.topics[0].topic_id
            if number % 3 == 0:
                reply = await self._client.ask(delete(name))
                raise_error(reply)
                raise_error(reply.delete_topics.topics[0])
                self.deleted.add(name)
            number += 1
        await self._client.close()


async def kill_leaders(quorum: LocalQuorum, kills: int, dice: random.Random) -> None:
    async with QuorumClient(quorum.endpoints) as client:
        for _ in range(kills):
            leader = await _leader(client)
            await asyncio.sleep(dice.uniform(0.1, 0.4))
            quorum.nodes[leader].kill()
            await _wait_for_another(client, leader)
            await asyncio.to_thread(quorum.restart, leader)


async def _wait_for_another(client: QuorumClient, leader: int) -> None:
    async with asyncio.timeout(30):
        while await _leader(client) == leader:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


async def _leader(client: QuorumClient) -> int:
    async with asyncio.timeout(30):
        while True:
            answers = [answer for _, answer in await client.describe_all(client.addresses)]
            known = [answer for answer in answers if isinstance(answer, Description)]
            leaders = [answer.node.node_id for answer in known if answer.role == "leader"]
            if leaders:
                return leaders[0]
            await asyncio.sleep(0.02)


async def drill(quorum: LocalQuorum, kills: int) -> list[Workload]:
    endpoints = quorum.endpoints
    workloads = [Workload(endpoints, name) for name in "ab"]
    async with scripted_brokers(endpoints, 3), asyncio.TaskGroup() as tasks:
        for workload in workloads:
            tasks.create_task(workload.run())
        await kill_leaders(quorum, kills, random.Random(kills))
        for workload in workloads:
            workload.is_over = True
    return workloads


def folded(directory: str, end_offset: int) -> tuple[Image, list[Record]]:
    """The image of a stopped controller at an offset, and all records that its log still has."""
    store = Store(OsFiles(), directory, SystemClock())
    image = EMPTY
    records: list[Record] = []
    try:
        snapshot = store.latest_snapshot()
        if snapshot is not None:
            values = (decode_record(each) for each in snapshot.values())
            image = load(values, snapshot.id.end_offset)
        for batch in batches_of(store, max(store.log.start_offset, image.end_offset), end_offset):
            found = [decode_record(each.value or b"") for each in batch.records()]
            records += found
            image = replay_all(image, found, batch.base_offset)
    finally:
        store.close()
    return image, records


def batches_of(store: Store, offset: int, end_offset: int) -> Iterator[RecordBatch]:
    """The batches of a log that are not control records."""
    while offset < end_offset:
        part = store.log.read(offset, 1 << 20, limit=end_offset)
        yield from (each for each in read_batches(part.read()) if not each.is_control)
        offset = part.next_offset


def check(quorum: LocalQuorum, workloads: list[Workload]) -> None:
    # M1, M3, M4, M5
    ends = {}
    for seat in quorum.seats:
        store = Store(OsFiles(), seat.directory, SystemClock())
        ends[seat.node_id] = store.log.end_offset
        store.close()
    common = sorted(ends.values())[1]  # what a majority has; all acknowledged is below it
    complete = [seat.directory for seat in quorum.seats if ends[seat.node_id] >= common]
    found = [folded(directory, common) for directory in complete]
    assert len({digest(image) for image, _ in found}) == 1
    image, records = found[0]
    made = [record.name for record in records if isinstance(record, TopicRecord)]
    assert len(made) == len(set(made)), "a topic was created twice"
    removed = [record.topic_id for record in records if isinstance(record, RemoveTopic)]
    assert len(removed) == len(set(removed))
    for workload in workloads:
        assert workload.created, "nothing was acknowledged"
        for name, topic_id in workload.created.items():
            topic = image.topic(name)
            if name in workload.deleted:
                assert topic is None, f"{name} is back"
            else:
                assert topic is not None, f"{name} is lost"
                assert topic.id.raw == topic_id
                assert len(topic.partitions) == 3


@pytest.mark.slow
def test_every_acknowledged_operation_survives_the_leaders(tmp_path: Path) -> None:
    # R3, R6
    with LocalQuorum(str(tmp_path / "quorum")) as quorum:
        quorum.start()
        workloads = asyncio.run(drill(quorum, kills=4))
        assert quorum.stop() == [0, 0, 0]
        check(quorum, workloads)


@pytest.mark.soak
def test_it_does_so_for_long(tmp_path: Path) -> None:
    with LocalQuorum(str(tmp_path / "quorum")) as quorum:
        quorum.start()
        workloads = asyncio.run(drill(quorum, kills=50))
        assert quorum.stop() == [0, 0, 0]
        check(quorum, workloads)
