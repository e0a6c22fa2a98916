import asyncio
import gc
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from kraftlog._check import InvariantViolation, invariant
from kraftlog.connection import open_channel
from kraftlog.errors import ConfigError, LogDirLocked
from kraftlog.health import ServingStatus
from quorum.driver import Driver
from quorum.journal import JournalApplication
from quorum.server import open_controller, spare_the_loop
from quorum.service import SERVICE
from tests.loops import run, until
from tests.quorum.cells import cell, first_error, journal


def test_three_controllers_elect_a_leader_and_agree(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            offset = await three.propose(b"one", b"two")
            assert await three.propose(b"three") == offset + 2
            await three.settle()
            kept = [journal(server) for server in three.servers.values()]
            assert {(each.records, each.digest) for each in kept} == {(3, kept[0].digest)}

    run(story())


def test_a_leader_that_stops_hands_over_first(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            before = await three.propose(b"before")
            old = await three.leader()
            epoch = old.node.core.epoch
            await three.stop(old.identity.key.node_id)
            new = await three.leader()
            assert new is not old
            assert new.node.core.epoch > epoch  # R3
            assert await three.propose(b"after") > before

    run(story())


def test_a_restart_finds_its_log(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            await one.propose(b"kept")
            epoch = (await one.leader()).node.core.epoch
            await one.stop(101)
            await one.start(101)
            leader = await one.leader()
            assert leader.node.core.epoch > epoch
            await one.settle()
            assert journal(leader).records == 1

    run(story())


def test_two_processes_cannot_have_one_directory(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            with pytest.raises(LogDirLocked, match=r"\.lock is locked by process"):
                async with open_controller(one.configs[101], lambda _: JournalApplication()):
                    pass
            assert await one.propose(b"goes on") > 0

    run(story())


def test_a_node_id_that_is_not_the_directorys_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            await one.stop(101)
            wrong = replace(one.configs[101], node_id=7)
            with pytest.raises(ConfigError, match=r"node\.id = 7, but .* belongs to node 101"):
                async with open_controller(wrong, lambda _: JournalApplication()):
                    pass
            await one.start(101)

    run(story())


def test_health_follows_the_leader(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            await one.leader()
            async with open_channel(one.endpoints[0]) as channel:
                check: grpc.aio.UnaryUnaryMultiCallable[StringValue, Int32Value]
                check = channel.unary_unary(
                    "/grpc.health.v1.Health/Check",
                    request_serializer=StringValue.SerializeToString,
                    response_deserializer=Int32Value.FromString,
                )
                assert (await check(StringValue())).value == ServingStatus.SERVING
                status = 0
                while status != ServingStatus.SERVING:
                    status = (await check(StringValue(value=SERVICE))).value

    run(story())


@pytest.mark.parametrize("where", ["the node's task", "a callback"])
def test_a_broken_invariant_ends_the_server_with_its_facts(tmp_path: Path, where: str) -> None:
    def break_a_rule(_: Driver | None = None) -> None:
        invariant(False, "water is dry", wet=True)

    async def run_and_break() -> None:
        async with cell(tmp_path, nodes=1) as one:
            leader = await one.leader()
            if where == "a callback":
                asyncio.get_running_loop().call_soon(break_a_rule)
                await asyncio.Event().wait()
            await leader.node.call(break_a_rule)

    async def story() -> None:
        with pytest.raises(BaseExceptionGroup) as caught:
            await run_and_break()
        error = first_error(caught.value)
        assert isinstance(error, InvariantViolation)
        assert str(error) == "water is dry: wet=True"

    run(story())


def test_what_runs_beside_it_may_end_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            await one.stop(101)

            async def fail(_: object) -> None:
                raise ConfigError("beside")

            async with open_controller(one.configs[101], lambda _: JournalApplication()) as server:
                with pytest.raises(ExceptionGroup) as caught:
                    await server.run(fail)
            assert str(first_error(caught.value)) == "beside"
            await one.start(101)

    run(story())


def test_no_full_collection_once_a_server_runs() -> None:
    thresholds = gc.get_threshold()
    try:
        spare_the_loop()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[2] > 1_000_000
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def test_the_loop_is_measured(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            server = await one.leader()
            await until(lambda: "kraftlog_loop_lag_seconds_count 0" not in server.registry.text())
            await asyncio.sleep(0)

    run(story())
