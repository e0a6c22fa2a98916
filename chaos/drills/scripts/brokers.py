"""Partitions lose their leader, in every way."""

import time

from chaos.drills.catalog import drill
from chaos.live.edges import CLIENT
from chaos.live.stage import Stage

AFTER_SECONDS = 1.0


def judge_move(stage: Stage, since: float) -> None:
    """Writes go on with another leader; how long they did not."""
    stage.wait_for_writes(since + stage.timing.session)
    stage.run_for(AFTER_SECONDS)
    stage.measure("u_write", stage.load.write_gap(since, time.monotonic()))


@drill(10, "kill-partition-leader", "kill -9 a broker that leads", in_chaos=True)
def kill_partition_leader(stage: Stage) -> None:
    victim = stage.leader()
    begun = stage.kill(victim)
    judge_move(stage, begun)
    stage.start(victim)


@drill(11, "stop-partition-leader", "SIGTERM a broker that leads", in_chaos=True)
def stop_partition_leader(stage: Stage) -> None:
    victim = stage.leader()
    begun = stage.stop(victim)
    judge_move(stage, begun)
    stage.start(victim)


@drill(12, "pause-broker", "SIGSTOP a leader for 2 sessions, then SIGCONT", in_chaos=True)
def pause_broker(stage: Stage) -> None:
    victim = stage.leader()
    node_id = stage.cluster.node_id(victim)
    begun = stage.pause(victim)
    judge_move(stage, begun)
    stage.run_for(max(0.0, begun + 2 * stage.timing.session - time.monotonic()))
    stage.expect(f"{victim} was fenced", holds=stage.watcher.fenced_at(node_id, begun) is not None)
    stage.resume(victim)


@drill(
    13,
    "broker-loses-controllers",
    "cut a leader from the controllers; clients still reach it",
    in_chaos=True,
)
def broker_loses_controllers(stage: Stage) -> None:
    victim = stage.leader()
    begun = stage.fault("isolate from controllers", victim)
    stage.edges.isolate(victim, stage.cluster.controllers)
    stage.measure("t_fence", stage.wait_fenced(victim, begun))
    judge_move(stage, begun)
    stage.expect(f"{victim} leads nothing", holds=stage.leader() != victim)


@drill(15, "ack-loss", "replies of a leader to clients are lost for 5 s", in_chaos=True)
def ack_loss(stage: Stage) -> None:
    victim = stage.leader()
    stage.spoil("ack-loss", CLIENT, victim)
    stage.run_for(5.0)
    healed = stage.heal_edges()
    stage.wait_for_writes(healed)
