import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Awaitable, Callable

import pytest

from kraftlog import client_keys as keys
from kraftlog._background import Background
from kraftlog.client_config import COMMON, common_options, read_options
from kraftlog.cluster_client import ClusterClient
from kraftlog.cluster_view import Node
from kraftlog.errors import (
    ErrorCode,
    InvalidRequest,
    KraftError,
    NetworkError,
    RetriableError,
    TimeoutError_,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kraftlog.resolver import RESOLVE_VARIABLE
from kraftlog.rpc import broker_pb2
from kraftlog.types import TopicPartition
from tests.kraftlog.toy_cluster import Fault, ToyCluster

T0 = TopicPartition("t", 0)


def run(
    bootstrap: str,
    work: Callable[[ClusterClient], Awaitable[None]],
    *,
    auto_create: bool = False,
    **arguments: object,
) -> None:
    quick = {"retry_backoff": "5ms", "request_timeout": "400ms"}
    options = read_options("client", COMMON, quick | arguments)
    assert options[keys.RETRY_BACKOFF_MS] == 5

    async def main() -> None:
        failures: list[BaseException] = []
        background = await Background.open("test", failures.append)
        try:
            async with asyncio.timeout(30):
                common = common_options(bootstrap, options, "test")
                await work(ClusterClient(common, background, auto_create=auto_create))
        finally:
            await background.close()
        assert failures == []

    asyncio.run(main())


def buffers_towards(port: int) -> set[int]:
    """The receive buffers of this process' connections to a port."""
    found: set[int] = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as peer:
            if peer.getpeername()[1:2] == (port,):
                found.add(peer.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
    return found


# R33: socket buffers
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs the files of Linux' /proc")
def test_the_receive_buffer_of_its_sockets_is_set(toys: ToyCluster) -> None:
    seen: list[set[int]] = []
    address = toys.bootstrap.split(",")[0]

    async def work(client: ClusterClient) -> None:
        await client.ensure_topic("t", timeout_ms=20_000)
        seen.append(buffers_towards(int(address.rpartition(":")[2])))

    run(address, work)
    run(address, work, receive_buffer_bytes=12_345)
    assert 2 * 12_345 in seen[1] - seen[0]  # the kernel doubles it


# R17: any broker gives the metadata
def test_the_view_is_found_by_any_broker(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        topic = await client.ensure_topic("t", timeout_ms=20_000)
        assert len(topic.partitions) == 2
        assert set(client.view.brokers) == {1, 2}
        assert client.view.cluster_id == toys.truth.cluster_id.raw
        assert client.view.controller_id == 101

    for address in toys.bootstrap.split(","):
        run(address, work)
        run(f"127.0.0.1:1,{address}", work)


# R17: refreshed by age
def test_the_view_is_refreshed_by_age(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        await client.ensure_topic("t", timeout_ms=20_000)
        toys.truth.lead("t", 0, 2)
        changed = asyncio.Event()

        def check() -> None:
            if client.view.leader_id("t", 0) == 2:
                changed.set()

        client.on_change(check)
        await changed.wait()

    run(toys.bootstrap, work, metadata_max_age="100ms")


def test_a_topic_that_appears_is_found(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        with pytest.raises(UnknownTopicOrPartition):
            await client.ensure_topic("late", timeout_ms=50)
        toys.add_topic("late", 3)
        assert len((await client.ensure_topic("late", timeout_ms=20_000)).partitions) == 3

    run(toys.bootstrap, work)


# R17, R22: who waits for a topic that cannot be made takes nothing from the others
@pytest.mark.parametrize(
    "fault",
    [
        Fault("metadata", refuse=ErrorCode.NOT_CONTROLLER, creating=True, times=-1),
        Fault("metadata", lose_request=True, creating=True, times=-1),
        Fault("metadata", broker=0),  # auto.create.topics.enable is off
    ],
    ids=["refused", "not answered", "off"],
)
def test_a_leader_is_found_while_a_topic_is_waited_for(toys: ToyCluster, fault: Fault) -> None:
    async def work(client: ClusterClient) -> None:
        await client.ensure_topic("t", timeout_ms=20_000)
        toys.faults.append(fault)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(client.ensure_topic("missing", timeout_ms=60_000))
            while "missing" not in client.topics:
                await client.refresh(timeout_ms=20_000)
            for leader in (2, 1, 2):
                toys.truth.lead("t", 0, leader)
                for _ in range(20):
                    assert await client.refresh(timeout_ms=20_000)
                assert client.view.leader_id("t", 0) == leader
                assert not waiting.done()
            waiting.cancel()

    run(toys.bootstrap, work, auto_create=True)


def test_why_a_topic_was_not_made_is_told(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        await client.ensure_topic("t", timeout_ms=20_000)
        lost = Fault("metadata", lose_request=True, creating=True, times=-1)
        refused = Fault("metadata", refuse=ErrorCode.INVALID_REQUEST, creating=True, times=-1)
        toys.faults.append(lost)
        with pytest.raises(TimeoutError_, match="whether it created missing"):
            await client.ensure_topic("missing", timeout_ms=200)
        toys.faults[:] = [refused]
        with pytest.raises(InvalidRequest):
            await client.ensure_topic("missing", timeout_ms=20_000)

    run(toys.bootstrap, work, auto_create=True)


# R22
def test_topics_are_made_for_those_who_wait_for_them(toys: ToyCluster) -> None:
    toys.truth.auto_create = 3

    async def work(client: ClusterClient) -> None:
        names = [f"n{number}" for number in range(10)]
        found = await asyncio.gather(*[client.ensure_topic(n, timeout_ms=20_000) for n in names])
        assert [(topic.name, len(topic.partitions)) for topic in found] == [(n, 3) for n in names]
        assert toys.seen.count("metadata") < 10, "and many of them with one request"

    run(toys.bootstrap, work, auto_create=True)


def test_the_next_broker_is_asked_when_one_is_gone(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        await client.ensure_topic("t", timeout_ms=20_000)
        for gone, left in ((1, 2), (2, 1)):
            toys.stop(gone)
            assert await client.refresh(timeout_ms=20_000)
            while set(client.view.brokers) != {left}:
                await client.refresh(timeout_ms=20_000)
            toys.start(gone)

    run(toys.bootstrap, work)


def streams() -> set[str]:
    names = {task.get_name() for task in asyncio.all_tasks()}
    return {name for name in names if "stream to" in name}


def test_a_broker_that_comes_back_elsewhere_leaves_no_stream_behind(toys: ToyCluster) -> None:
    bootstrap = toys.bootstrap.split(",")[0]

    async def move(client: ClusterClient) -> str:
        """Broker 2, to another port, and a question to it there."""
        toys.stop(2)
        before = toys.truth.ports.pop(2)
        toys.start(2)
        moved = f"127.0.0.1:{toys.truth.ports[2]}"
        assert toys.truth.ports[2] != before
        while 2 not in client.view.brokers or client.view.brokers[2].address != moved:
            await client.refresh(timeout_ms=20_000)
        request = broker_pb2.MetadataRequest()
        await client.ask(moved, "metadata", request, timeout_ms=20_000, purpose="fetch")
        return moved

    async def work(client: ClusterClient) -> None:
        places = [await move(client) for _ in range(4)]
        until_dropped = {f"test: fetch stream to {place}" for place in places[:-1]}
        while until_dropped & streams():
            await client.refresh(timeout_ms=20_000)
        assert f"test: fetch stream to {places[-1]}" in streams()

    run(bootstrap, work)


def test_a_stream_on_which_an_answer_is_waited_for_is_kept(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        await client.ensure_topic("t", timeout_ms=20_000)
        address = client.view.brokers[2].address
        toys.faults.append(Fault("list_offsets", hold=threading.Event(), broker=2))
        async with asyncio.TaskGroup() as tasks:
            question = client.ask(
                address, "list_offsets", broker_pb2.ListOffsetsRequest(), timeout_ms=20_000
            )
            asked = tasks.create_task(question)
            while "list_offsets" not in toys.seen:
                await client.refresh(timeout_ms=20_000)
            toys.truth.running.discard(2)
            while 2 in client.view.brokers:
                await client.refresh(timeout_ms=20_000)
            toys.release_held()
            assert (await asked).HasField("list_offsets")
        while f"test: control stream to {address}" in streams():
            await client.refresh(timeout_ms=20_000)
        toys.truth.running.add(2)

    run(toys.bootstrap.split(",")[0], work)


def test_a_broker_with_old_news_is_not_asked_for_ever(toys: ToyCluster) -> None:
    """It answers at once, and does not know that it leads no more: others do."""

    async def work(client: ClusterClient) -> None:
        await client.ensure_topic("t", timeout_ms=20_000)
        request = broker_pb2.MetadataRequest(all_topics=True)
        old_news = toys.truth.metadata(request)
        toys.faults.append(Fault("metadata", old_news=old_news, broker=1, times=10**9))
        toys.truth.lead("t", 0, 2)
        while client.view.leader_id("t", 0) != 2:
            await client.refresh(timeout_ms=20_000)

    run(toys.bootstrap.split(",")[0], work)


def test_a_request_is_answered_or_there_is_a_reason(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        address = toys.bootstrap.split(",")[0]
        request = broker_pb2.MetadataRequest()
        reply = await client.ask(address, "metadata", request, timeout_ms=20_000)
        assert len(reply.metadata.brokers) == 2
        toys.faults.append(Fault("metadata", refuse=ErrorCode.UNSUPPORTED_VERSION))
        with pytest.raises(UnsupportedVersion) as refused:
            await client.ask(address, "metadata", request, timeout_ms=20_000)
        assert refused.value.node == address
        toys.faults.append(Fault("metadata", lose_reply=True))
        with pytest.raises(NetworkError, match="no answer"):
            await client.ask(address, "metadata", request, timeout_ms=50)
        with pytest.raises(RetriableError, match="cannot be reached"):
            await client.ask("127.0.0.1:1", "metadata", request, timeout_ms=20_000)

    run(toys.bootstrap, work)


def test_any_broker_will_do(toys: ToyCluster) -> None:
    async def work(client: ClusterClient) -> None:
        toys.faults.append(Fault("init_producer_id", lose_reply=True))
        toys.faults.append(
            Fault("init_producer_id", refuse=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=3)
        )
        request = broker_pb2.InitProducerIdRequest()
        reply = await client.ask_any("init_producer_id", request, timeout_ms=20_000)
        assert reply.init_producer_id.producer_id > 0
        toys.faults.append(Fault("init_producer_id", refuse=ErrorCode.UNSUPPORTED_VERSION))
        with pytest.raises(UnsupportedVersion):
            await client.ask_any("init_producer_id", request, timeout_ms=20_000)

    run(toys.bootstrap, work)


def test_the_leader_is_asked_whoever_it_is(toys: ToyCluster) -> None:
    asked: list[tuple[int, int]] = []

    async def attempt(node: Node, epoch: int, remaining_ms: float) -> str:
        asked.append((node.node_id, epoch))
        if len(asked) == 1:
            toys.truth.lead("t", 0, 2)
            raise KraftError("moved", code=ErrorCode.BROKER_NOT_AVAILABLE) from None
        return "done"

    async def work(client: ClusterClient) -> None:
        with pytest.raises(KraftError, match="moved"):
            await client.ask_leader(T0, attempt, timeout_ms=20_000)

    run(toys.bootstrap, work)

    async def retriable(node: Node, epoch: int, remaining_ms: float) -> str:
        asked.append((node.node_id, epoch))
        if len(asked) == 1:
            toys.truth.lead("t", 0, 1)
            raise RetriableError("moved", code=ErrorCode.BROKER_NOT_AVAILABLE)
        return "done"

    async def work_again(client: ClusterClient) -> None:
        assert await client.ask_leader(T0, retriable, timeout_ms=20_000) == "done"

    asked.clear()
    run(toys.bootstrap, work_again)
    assert asked == [(2, 1), (1, 2)]


def test_every_dial_goes_through_the_resolver(
    toys: ToyCluster, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = toys.bootstrap.split(",")
    file = tmp_path_factory.mktemp("resolve") / "map.json"
    file.write_text(f'{{"nowhere:1": "{addresses[0]}", "{addresses[0]}": "{addresses[0]}"}}')
    monkeypatch.setenv(RESOLVE_VARIABLE, str(file))

    async def work(client: ClusterClient) -> None:
        assert len((await client.ensure_topic("t", timeout_ms=20_000)).partitions) == 2

    run("nowhere:1", work)
