import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from brokers.cluster import PartitionId
from brokers.requests import FetchPart, FetchReply, FetchRequest, ReplicaIdentity
from brokers.source_link import BrokerLink
from kraftlog.errors import ErrorCode
from tests.brokers.brokers import Cluster
from tests.brokers.images import uuid
from tests.brokers.served import served
from tests.loops import run, until

PLACE = PartitionId(uuid("t").raw, 0)


@asynccontextmanager
async def linked(endpoints: dict[int, str]) -> AsyncIterator[BrokerLink]:
    link = BrokerLink(7, endpoint=endpoints.get, resolve=str, client_id="broker 2")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(link.run())
        yield link
        running.cancel()


async def ask(link: BrokerLink, request: FetchRequest, timeout_ms: int) -> FetchReply | None:
    got: list[FetchReply | None] = []
    link.send(request, timeout_ms=timeout_ms, on_reply=got.append)
    await until(lambda: bool(got), "a reply")
    return got[0]


def fetch(session_id: int = 0, session_epoch: int = -1) -> FetchRequest:
    return FetchRequest(
        replica=ReplicaIdentity(2, 2),
        max_wait_ms=0,
        session_id=session_id,
        session_epoch=session_epoch,
        parts=[FetchPart(PLACE, 0, leader_epoch=0)],
    )


def test_records_come_over_the_link(tmp_path: Path) -> None:  # R9
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            await cluster.produce(PLACE, b"a")
            async with (
                served(cluster.brokers[1].manager) as broker,
                linked({7: broker.address}) as link,
            ):
                reply = await ask(link, fetch(), 20_000)
                assert reply is not None
                [part] = reply.parts
                assert (part.error, part.partition, part.end_offset) == (None, PLACE, 1)
                assert part.records

    run(story())


def test_an_error_of_the_whole_is_one_of_the_reply(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
            linked({7: broker.address}) as link,
        ):
            reply = await ask(link, fetch(99, 4), 20_000)
            assert reply is not None
            assert reply.error is not None
            assert reply.error.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    run(story())


def test_a_broker_is_found_where_the_metadata_says_it_is_now(tmp_path: Path) -> None:
    async def story() -> None:
        endpoints: dict[int, str] = {}
        async with Cluster(tmp_path, count=1) as cluster, linked(endpoints) as link:
            assert await ask(link, fetch(), 100) is None  # it is nowhere yet
            for _ in range(2):
                async with served(cluster.brokers[1].manager) as broker:
                    endpoints[7] = broker.address
                    await until_answered(link)

    async def until_answered(link: BrokerLink) -> None:
        while await ask(link, fetch(), 500) is None:
            pass

    run(story())
