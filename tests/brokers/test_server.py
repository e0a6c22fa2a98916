"""One broker, and sometimes two, from the lock on its directory to the mark of a clean stop."""

import asyncio
import errno
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from brokers.lifecycle import BrokerState
from kraftlog._check import InvariantViolation, invariant
from kraftlog.connection import open_channel
from kraftlog.errors import (
    DuplicateBrokerRegistration,
    ErrorCode,
    LogDirLocked,
    StorageError,
)
from kraftlog.record_batch import RecordBatch
from kraftlog.rpc import broker_pb2, controller_pb2
from storage.segment import Segment
from tests.brokers.test_service import fetch, produce, values_of
from tests.brokers.town import Town, town
from tests.loops import run, until

NOT_YET = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

pytestmark = pytest.mark.slow

CLEAN_MARK = ".kafka_cleanshutdown"


async def call(address: str, request: broker_pb2.BrokerRequest) -> broker_pb2.BrokerReply:
    async with open_channel(address) as channel:
        unary = channel.unary_unary(
            "/kraftlog.rpc.Broker/Call",
            request_serializer=broker_pb2.BrokerRequest.SerializeToString,
            response_deserializer=broker_pb2.BrokerReply.FromString,
        )
        return await unary(request, timeout=20)


def for_topic(request: broker_pb2.BrokerRequest, topic_id: bytes) -> broker_pb2.BrokerRequest:
    kind = getattr(request, request.WhichOneof("request") or "")
    kind.topics[0].topic_id = topic_id
    return request


def first_error(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


async def ends_with(place: Town, act: Callable[[Town], Awaitable[object]]) -> BaseException:
    """What ends the brokers that are started apart from the others."""
    try:
        async with asyncio.TaskGroup() as tasks:
            await act(Town(place.directory, place.cluster_id, place.peer, tasks, place.link))
    except BaseExceptionGroup as group:
        return first_error(group)
    raise AssertionError("nothing went wrong")


def test_a_broker_starts_serves_and_stops_cleanly(tmp_path: Path) -> None:  # R6, R7
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1")
            assert server.lifecycle.state is BrokerState.RUNNING
            topic_id = await place.create("t", 1)
            reply = await call(server.address.endpoint, for_topic(produce(b"a"), topic_id))
            assert reply.produce.topics[0].partitions[0].error.message == ""
            assert not (tmp_path / "b1" / CLEAN_MARK).exists()
            await place.stop("b1")
            mark = (tmp_path / "b1" / CLEAN_MARK).read_text()
            assert f'"brokerEpoch":{server.lifecycle.broker_epoch}' in mark.replace(" ", "")

            again = await place.start("b1")  # its directory knows who it is
            assert again.lifecycle.broker_id == 1
            assert again.lifecycle.broker_epoch > server.lifecycle.broker_epoch
            # It is unfenced first and elected then: until it knows, it says that it does not lead.
            part = await answered(again.address.endpoint, topic_id)
            assert values_of(part.records) == [b"a"]

    async def answered(endpoint: str, topic_id: bytes) -> broker_pb2.FetchPartitionReply:
        while True:
            reply = await call(endpoint, for_topic(fetch(), topic_id))
            part = reply.fetch.topics[0].partitions[0]
            if part.error.code not in NOT_YET:
                return part
            await asyncio.sleep(0.01)

    run(story())


def test_two_brokers_replicate(tmp_path: Path) -> None:  # R4, R9
    async def story() -> None:
        async with town(tmp_path) as place:
            first = await place.start("b1", node_id="1")
            second = await place.start("b2", node_id="2")
            topic_id = await place.create("t", 1, 2)
            request = for_topic(produce(b"a"), topic_id)
            reply = await call(first.address.endpoint, request)
            assert reply.produce.topics[0].partitions[0].error.message == ""
            await place.stop("b1")
            # The stop was answered only when the other one led.
            reply = await call(second.address.endpoint, for_topic(fetch(), topic_id))
            part = reply.fetch.topics[0].partitions[0]
            assert (part.error.message, values_of(part.records)) == ("", [b"a"])

    run(story())


def test_an_id_is_handed_out_and_kept(tmp_path: Path) -> None:  # R1
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("nameless")
            given = server.lifecycle.broker_id
            assert given >= 1
            meta = (tmp_path / "nameless" / "meta.properties").read_text()
            assert f"node.id={given}\n" in meta

    run(story())


def test_an_id_in_use_is_refused(tmp_path: Path) -> None:  # R1
    async def twin(apart: Town) -> None:
        await apart.start("twin", node_id="1", initial_broker_registration_timeout_ms="300")

    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1")
            assert isinstance(await ends_with(place, twin), DuplicateBrokerRegistration)
            assert not server.lifecycle.is_fenced

    run(story())


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with town(tmp_path) as place:
            await place.start("b1", node_id="1")
            error = await ends_with(place, lambda apart: apart.start("b1", node_id="1"))
            assert isinstance(error, LogDirLocked)

    run(story())


@pytest.mark.parametrize("error", [InvariantViolation("broken"), StorageError("the disk")])
def test_what_must_end_the_process_leaves_no_mark_of_a_clean_stop(
    tmp_path: Path, error: BaseException
) -> None:
    async def break_it(apart: Town) -> None:
        server = await apart.start("b1", node_id="1")
        server.fail(error)

    async def story() -> None:
        async with town(tmp_path) as place:
            assert await ends_with(place, break_it) is error
            assert not (tmp_path / "b1" / CLEAN_MARK).exists()
            await place.open("b1")  # nothing was left locked

    run(story())


def test_a_broken_invariant_in_a_callback_ends_the_process(tmp_path: Path) -> None:
    async def break_it(apart: Town) -> None:
        await apart.start("b1", node_id="1")
        asyncio.get_running_loop().call_soon(invariant, False, "water is dry")
        await asyncio.Event().wait()

    async def story() -> None:
        async with town(tmp_path) as place:
            assert str(await ends_with(place, break_it)) == "water is dry: "

    run(story())


def test_a_leader_that_cannot_append_ends_so_that_others_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Segment.append

    def full(segment: Segment, batches: Sequence[RecordBatch]) -> None:
        if "/b1/t-0/" in segment.log.path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), segment.log.path)
        append(segment, batches)

    async def fill(apart: Town) -> None:
        server = await apart.start("b1", node_id="1")
        topic_id = await apart.create("t", 1)
        monkeypatch.setattr(Segment, "append", full)
        reply = await call(server.address.endpoint, for_topic(produce(b"a"), topic_id))
        error = reply.produce.topics[0].partitions[0].error
        assert error.code == ErrorCode.KAFKA_STORAGE_ERROR
        await asyncio.Event().wait()

    async def story() -> None:
        async with town(tmp_path) as place:
            error = await ends_with(place, fill)
            assert isinstance(error, StorageError)
            assert os.strerror(errno.ENOSPC) in error.message

    run(story())


def test_a_stop_before_the_registration_is_quick_and_clean(tmp_path: Path) -> None:
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.open("b1", node_id="1", quorum_peers="127.0.0.1:1")
            assert server.lifecycle.registered is None
            await place.stop("b1")
            assert (tmp_path / "b1" / CLEAN_MARK).exists()

    run(story())


def test_a_second_stop_does_not_wait_for_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1", controlled_shutdown_timeout_ms="1h")
            # A controller that is gone can relieve nobody.
            server.lifecycle.begin_stop = lambda: None  # type: ignore[method-assign]
            server.stop()
            server.stop()
            await place.running["b1"]
            assert (tmp_path / "b1" / CLEAN_MARK).exists()

    run(story())


def test_a_stop_waits_no_longer_than_it_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1", controlled_shutdown_timeout_ms="50")
            server.lifecycle.begin_stop = lambda: None  # type: ignore[method-assign]
            await place.stop("b1")
            assert "others have not taken over within 50 ms" in caplog.text
            assert (tmp_path / "b1" / CLEAN_MARK).exists()

    run(story())


# R16
def test_how_slow_is_slow_is_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with town(tmp_path) as place:
            patient = await place.start("b1", node_id="1", slow_request_log_ms="1h")
            hasty = await place.start("b2", node_id="2", slow_request_log_ms="0")
            metadata = broker_pb2.BrokerRequest(metadata=broker_pb2.MetadataRequest())
            await call(patient.address.endpoint, metadata)
            assert "slow metadata" not in caplog.text
            await call(hasty.address.endpoint, metadata)
            assert "slow metadata of client" in caplog.text

    run(story())


def test_a_broker_that_was_unregistered_comes_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1")
            epoch = server.lifecycle.broker_epoch
            message = controller_pb2.UnregisterBrokerRequest(broker_id=1)
            await place.ask(controller_pb2.ControllerRequest(unregister_broker=message))
            await until(lambda: server.lifecycle.broker_epoch > epoch, "another registration")
            await server.lifecycle.unfenced.wait()

    run(story())


def test_metrics_tell_how_it_is(tmp_path: Path) -> None:
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1", metrics_listeners="127.0.0.1:0")
            await place.create("t", 1)
            text = server.registry.text()
            assert 'kraftlog_broker_state{state="running"} 1\n' in text
            assert "kraftlog_partitions_led 1\n" in text
            assert "kraftlog_loop_lag_seconds_count" in text
            assert server.address.metrics is not None
            assert 'kraftlog_metadata_lag_records{node="1"} 0\n' in text
            documented = (Path(__file__).parents[2] / "docs" / "BROKERS.md").read_text()
            names = set(re.findall(r"`(kraftlog_\w+)`", documented))
            assert names == set(server.registry.names())

    run(story())


def test_replication_rates_hold_as_soon_as_they_are_set(tmp_path: Path) -> None:
    """Those of one broker over those of all, as kraftctl's reassign --throttle sets them."""

    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1")
            manager = server._manager
            assert manager is not None
            given, taken = manager.fetches.throttle, manager._follower_throttle
            assert (given.bytes_per_second, taken.bytes_per_second) == (None, None)
            await set_rates(place, "", leader="1000", follower="2000")
            await until(lambda: given.bytes_per_second == 1_000, "the leader's rate")
            assert taken.bytes_per_second == 2_000
            await set_rates(place, "1", leader="3000")
            await until(lambda: given.bytes_per_second == 3_000, "its own rate")
            assert taken.bytes_per_second == 2_000

    run(story())


async def set_rates(place: Town, broker: str, **rates: str) -> None:
    resource = controller_pb2.ConfigResource(type=controller_pb2.RESOURCE_TYPE_BROKER, name=broker)
    changes = [
        controller_pb2.ConfigChange(name=f"{side}.replication.throttled.rate", value=rate)
        for side, rate in rates.items()
    ]
    message = controller_pb2.AlterConfigsRequest(
        resources=[controller_pb2.ResourceChanges(resource=resource, changes=changes)]
    )
    reply = await place.ask(controller_pb2.ControllerRequest(alter_configs=message))
    assert not any(each.HasField("error") for each in reply.alter_configs.resources)
