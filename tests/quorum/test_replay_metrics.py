"""How fresh a replica is, as Prometheus sees it."""

from pathlib import Path

from kraftlog.clock import SystemClock
from kraftlog.metrics import Registry
from quorum.replay_metrics import register_replay
from quorum.snapshots import SnapshotKeeper, SnapshotPolicy
from tests.loops import run
from tests.quorum.cells import cell
from tests.quorum.test_metrics import values

WALL = SystemClock()


def test_a_replica_tells_how_fresh_it_is(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            server = await one.leader()
            before_ms = WALL.wall_ms()
            await one.propose(b"x")
            await one.settle()
            registry = Registry()
            keeper = SnapshotKeeper(server.node, SnapshotPolicy(), WALL)
            register_replay(registry, server.node, keeper)
            found = values(registry.text())
            written_ms = found["kraftlog_metadata_applied_timestamp_seconds"] * 1000
            assert before_ms <= round(written_ms) <= WALL.wall_ms()
            assert found["kraftlog_metadata_lag_seconds"] == 0
            assert found["kraftlog_snapshot_bytes"] == 0
            assert found["kraftlog_snapshots_rejected_total"] == 0
            assert await keeper.write() is not None
            assert values(registry.text())["kraftlog_snapshot_bytes"] > 0

    run(story())
