"""More than one thing at a time, or one after the other."""

import time

from chaos.drills.catalog import drill
from chaos.drills.scripts.brokers import judge_move
from chaos.live.stage import TOPIC, Stage
from kraftlog.types import TopicPartition

CHASE_ROUNDS = 5
MID_ELECTION_SECONDS = 0.3
MONKEY_SECONDS = 60.0
MONKEY_MEAN_SECONDS = 5.0


@drill(23, "double-fault", "kill the controller and a partition leader; again mid-election")
def double_fault(stage: Stage) -> None:
    for pause in (0.0, MID_ELECTION_SECONDS):
        epoch, controller, leader = stage.epoch, stage.controller(), stage.leader()
        begun = stage.kill(controller)
        stage.run_for(pause)
        stage.kill(leader)
        stage.measure("t_controller", stage.wait_controller(epoch, begun))
        judge_move(stage, begun)
        stage.start(controller)
        stage.start(leader)
        stage.cluster.wait_healthy(60, in_sync=True)


@drill(24, "rolling-restart", "SIGTERM and restart all six, one by one", in_chaos=True)
def rolling_restart(stage: Stage) -> None:
    for name in [*stage.cluster.controllers, *stage.cluster.brokers]:
        begun = stage.stop(name)
        stage.start(name)
        stage.cluster.wait_healthy(60, in_sync=True)
        stage.measure("u_write", stage.load.write_gap(begun, time.monotonic()))
    stage.measure("failed", float(stage.load.errors.total()))


@drill(29, "leader-chase", "kill the partition leader and the controller, five times as elected")
def leader_chase(stage: Stage) -> None:
    for number in range(CHASE_ROUNDS):
        epoch, controller = stage.epoch, stage.controller()
        begun = stage.kill(controller)
        stage.measure("t_controller", stage.wait_controller(epoch, begun))
        leader = stage.leader(number % stage.options.partitions)
        judge_move(stage, stage.kill(leader))
        stage.start(controller)
        stage.start(leader)
        stage.cluster.wait_healthy(60, in_sync=True)


@drill(18, "rst-and-shred", "all edges cut into bits of 1 to 64 bytes, then reset")
def rst_and_shred(stage: Stage) -> None:
    for fault in ("shred", "rst"):
        stage.fault(fault, "all edges")
        for source, target in stage.edges.pairs:
            stage.edges.spoil(fault, source, target)
        stage.run_for(4.0)
        stage.wait_for_writes(stage.heal_edges())
    stage.measure("fatal", float(stage.load.errors.total()))


@drill(
    32,
    "scale-out",
    "a fourth broker joins, partitions move to it, 2 replicas become 3",
    replication_factor=2,
    topic_config={"min.insync.replicas": "1"},
)
def scale_out(stage: Stage) -> None:
    name = stage.add_broker()
    stage.cluster.wait_healthy(60)
    new = stage.cluster.node_id(name)
    targets: dict[TopicPartition, list[int] | None] = {}
    for (topic, partition), now in stage.watcher.partitions(TOPIC).items():
        targets[TopicPartition(topic, partition)] = [new, *sorted(now.isr)[:2]]
    stage.history.event("reassign", to=name)
    with stage.cluster.admin() as admin:
        admin.reassign(targets).raise_for_errors()
        stage.wait(lambda: not admin.list_reassignments(), "all partitions have moved")
    # What the controller has committed the brokers show a moment later.
    stage.wait(
        lambda: all(len(each.isr) == 3 for each in stage.watcher.partitions(TOPIC).values()),
        "every partition has three replicas in sync",
    )
    leaders = {each.leader for each in stage.watcher.partitions(TOPIC).values()}
    stage.say(f"{name} joined; brokers {sorted(leaders)} lead")
    stage.measure("failed", float(stage.load.errors.total()))


@drill(30, "monkey", "a seeded mix of faults for a minute, never below the quorum")
def monkey(stage: Stage) -> None:
    end = time.monotonic() + (stage.options.duration or MONKEY_SECONDS)
    while time.monotonic() < end:
        node = stage.dice.choice(stage.cluster.nodes)
        fault = stage.dice.choice(["kill", "stop", "pause", "isolate", "slow", "shred", "thin"])
        _hit(stage, fault, node)
        stage.run_for(stage.dice.uniform(0.5, 3.0))
        _mend(stage, fault, node)
        stage.cluster.wait_healthy(60, in_sync=True)
        stage.run_for(min(3.0, stage.dice.expovariate(1 / MONKEY_MEAN_SECONDS)))


def _hit(stage: Stage, fault: str, node: str) -> None:
    match fault:
        case "kill":
            stage.kill(node)
        case "stop":
            stage.stop(node)
        case "pause":
            stage.pause(node)
        case "isolate":
            stage.isolate(node)
        case _:
            stage.fault(fault, node)
            for source, target in stage.edges.pairs:
                if node in (source, target):
                    stage.edges.spoil(fault, source, target)


def _mend(stage: Stage, fault: str, node: str) -> None:
    match fault:
        case "kill" | "stop":
            stage.start(node)
        case "pause":
            stage.resume(node)
        case _:
            stage.heal_edges()
