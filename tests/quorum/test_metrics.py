import asyncio
import re
from dataclasses import replace
from pathlib import Path

from kraftlog.config import load
from kraftlog.config_keys import Scope
from kraftlog.metrics import Registry
from kraftlog.rpc import controller_pb2
from kraftlog.types import Uuid
from quorum.controller import Controller
from quorum.core.messages import Refusal
from quorum.metadata_service import MetadataService
from quorum.metrics import register_cluster, register_decisions, register_watch
from tests.loops import run, until
from tests.quorum.cells import cell
from tests.quorum.governed import SESSION_MS, Governed, registration


def values(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_a_node_tells_what_it_does(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            for _ in range(5):
                await three.propose(b"x", b"y")
            await three.settle()
            leader = await three.leader()
            found = values(leader.registry.text())
            assert found["kraftlog_raft_current_leader"] == leader.identity.key.node_id
            assert found["kraftlog_raft_current_epoch"] == leader.node.core.epoch
            assert found['kraftlog_raft_state{state="leader"}'] == 1
            assert found['kraftlog_raft_state{state="follower"}'] == 0
            assert found["kraftlog_raft_voters"] == 3
            assert found["kraftlog_raft_election_seconds_count"] >= 1
            assert found["kraftlog_raft_records_proposed_total"] == 10
            assert found["kraftlog_raft_commit_seconds_count"] == 5
            assert found["kraftlog_raft_applied_offset"] == leader.node.core.high_watermark
            assert len([name for name in found if "replica_lag_records" in name]) == 2
            other = values((await three.follower()).registry.text())
            assert other['kraftlog_raft_state{state="follower"}'] == 1

    run(story())


def test_the_documents_list_every_metric(tmp_path: Path) -> None:
    async def story() -> list[str]:
        async with cell(tmp_path, nodes=1) as one:
            return (await one.leader()).registry.names()

    service, registry = MetadataService(101, Uuid.random(), load(Scope.CONTROLLER)), Registry()
    service.register_metrics(registry)
    names = set(run(story()))
    text = (Path(__file__).parents[2] / "docs" / "QUORUM.md").read_text()
    assert set(re.findall(r"`(kraftlog_\w+)`", text)) == names | set(registry.names())


def test_a_controller_that_knows_nothing_yet_tells_zeros() -> None:
    registry = Registry()
    register_cluster(registry, Controller(101, leader_hint=lambda: ""))
    assert set(values(registry.text()).values()) == {0.0}


def test_the_active_controller_tells_of_brokers_and_of_its_queue() -> None:
    world, registry = Governed(), Registry()
    register_decisions(registry, world.controller)
    register_watch(registry, world.controller, world.watch)
    world.start(1, 2)
    world.create("t", (1, 2))
    applied = world.applied[2] = world.controller.committed.end_offset
    world.ledger.now += SESSION_MS
    world.beat(2)
    world.pass_time(1)  # broker 1 is silent
    found, end = values(registry.text()), world.controller.committed.end_offset
    assert found['kraftlog_metadata_lag_records{node="2"}'] == end - applied > 0
    assert found["kraftlog_controller_heartbeats_timed_out_total"] == 1
    assert found["kraftlog_failover_seconds_count"] == 1
    assert found["kraftlog_failover_seconds_sum"] == (SESSION_MS + 1) / 1000
    assert found["kraftlog_controller_new_active_total"] == 1
    assert found["kraftlog_controller_operations_total"] >= 3
    assert found["kraftlog_controller_decision_seconds_count"] >= 3
    assert found["kraftlog_controller_queue_seconds_sum"] == 0


def test_kafka_14457_what_is_decided_shows_when_it_is_committed() -> None:  # 40
    """Topics, partitions and brokers are counted in the committed image, never in the pending one:
    a leader that is deposed before the commit would have told what never was.
    """
    world, registry = Governed(), Registry()
    register_cluster(registry, world.controller)
    world.start(1, 2)
    world.create("t", (1, 2))
    before = values(registry.text())
    create = controller_pb2.CreateTopicsRequest()
    topic = create.topics.add(name="u")
    for _ in range(2):
        topic.assignments.add(broker_ids=(2, 1))
    world.send(controller_pb2.ControllerRequest(create_topics=create))
    world.send(registration(3))
    world.ledger.run()
    decided, committed = world.controller.pending, world.controller.committed
    assert (decided.partition_count, committed.partition_count) == (3, 1)
    assert len(decided.brokers) == 3
    assert values(registry.text()) == before
    world.ledger.settle()
    after = values(registry.text())
    assert after["kraftlog_cluster_topics"] == before["kraftlog_cluster_topics"] + 1 == 2
    assert after["kraftlog_cluster_partitions"] == before["kraftlog_cluster_partitions"] + 2 == 3
    assert after['kraftlog_cluster_brokers{state="fenced"}'] == 1


def test_votes_and_what_a_follower_fetched_are_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            await three.propose(b"x", b"y")
            await three.settle()
            leader, follower = await three.leader(), await three.follower()
            found, other = values(leader.registry.text()), values(follower.registry.text())
            assert found["kraftlog_raft_current_vote"] == leader.identity.key.node_id
            assert other["kraftlog_raft_records_fetched_total"] >= 2
            assert other["kraftlog_raft_log_end_epoch"] == leader.node.core.epoch
            assert other["kraftlog_raft_idle_seconds_total"] > 0

    run(story())


def test_a_vote_that_is_not_given_is_counted_by_its_reason(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            server = await one.leader()
            for request, ours in (("vote", True), ("pre-vote", True), ("vote", False)):
                server.node.core._replica.note_refusal(9, request, Refusal.LOG_BEHIND, ours=ours)
            found = values(server.registry.text())
            assert found['kraftlog_raft_vote_rejected_total{reason="log behind"}'] == 2

    run(story())


def test_they_are_served_where_it_is_asked_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            await one.stop(101)
            one.configs[101] = replace(one.configs[101], metrics="127.0.0.1:0")
            server = await one.start(101)
            address = server.address.metrics
            assert address is not None
            host, _, port = address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            answer = await reader.read()
            assert b"kraftlog_raft_current_epoch" in answer
            writer.close()
            await writer.wait_closed()

    run(story())


def test_the_loop_is_asked_ten_times_a_second(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            server = await one.leader()

            def measured() -> bool:
                return values(server.registry.text())["kraftlog_loop_lag_seconds_count"] >= 2

            await until(measured, "a measurement")

    run(story())
