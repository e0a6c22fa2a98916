"""The quorum loses its leader, in every way."""

import time

from chaos.drills.catalog import drill
from chaos.live.stage import Stage
from chaos.live.watch import CONTROLLER_SECONDS

AFTER_SECONDS = 1.0
ONE_WAY_SECONDS = 10.0
QUORUM_LOST_SECONDS = 10.0


def judge_takeover(stage: Stage, epoch: int, since: float) -> None:
    """A new controller, and what clients noticed of the change."""
    stage.measure("t_controller", stage.wait_controller(epoch, since))
    stage.run_for(AFTER_SECONDS)
    stage.measure("u_write", stage.load.write_gap(since, time.monotonic()))


@drill(2, "kill-controller-leader", "kill -9 the active controller; restart it", in_chaos=True)
def kill_controller_leader(stage: Stage) -> None:
    epoch, victim = stage.epoch, stage.controller()
    begun = stage.kill(victim)
    judge_takeover(stage, epoch, begun)
    stage.start(victim)


@drill(3, "stop-controller-leader", "SIGTERM to the active controller: it resigns", in_chaos=True)
def stop_controller_leader(stage: Stage) -> None:
    epoch, victim = stage.epoch, stage.controller()
    begun = stage.stop(victim)
    judge_takeover(stage, epoch, begun)
    stage.start(victim)


@drill(4, "pause-controller-leader", "SIGSTOP it for 3 fetch timeouts, then SIGCONT", in_chaos=True)
def pause_controller_leader(stage: Stage) -> None:
    epoch, victim = stage.epoch, stage.controller()
    begun = stage.pause(victim)
    judge_takeover(stage, epoch, begun)
    left = begun + 3 * stage.timing.fetch_timeout - time.monotonic()
    stage.run_for(max(0.0, left))
    woken = stage.resume(victim)
    stage.run_for(2 * stage.timing.fetch_timeout)
    stage.expect(
        f"{victim} does not lead its old epoch any more",
        holds=not stage.watcher.led_after(victim, epoch, woken + stage.timing.fetch_timeout),
    )


@drill(5, "partition-controller-leader", "cut all edges of the active controller", in_chaos=True)
def partition_controller_leader(stage: Stage) -> None:
    epoch, victim = stage.epoch, stage.controller()
    begun = stage.isolate(victim)
    cut = time.monotonic()
    judge_takeover(stage, epoch, begun)
    quiet = 4 * CONTROLLER_SECONDS  # that it was asked so often and did not say it leads
    stage.wait(
        lambda: time.monotonic() - stage.watcher.last_led(victim, epoch) > quiet,
        f"{victim} resigns",
    )
    stage.measure("t_resign", max(0.0, stage.watcher.last_led(victim, epoch) - cut))


@drill(6, "controller-minority-one-way", "a follower sends and does not receive, 10 s")
def controller_minority_one_way(stage: Stage) -> None:
    victim = stage.controller_followers()[0]
    epoch = stage.epoch
    begun = stage.fault("deaf", victim)
    for other in stage.cluster.controllers:
        if other != victim:
            # What it asks arrives, and what it hears is nothing.
            stage.edges.spoil("ack-loss", victim, other)
            stage.edges.cut(other, victim)
    stage.run_for(ONE_WAY_SECONDS)
    stage.expect("the leader stays", holds=stage.epoch == epoch)
    stage.measure("u_write", stage.load.write_gap(begun, time.monotonic()))


@drill(8, "quorum-lost", "kill 2 of 3 controllers for 10 s, then restart one", in_chaos=True)
def quorum_lost(stage: Stage) -> None:
    leader, other = stage.controller(), stage.controller_followers()[0]
    epoch = stage.epoch
    begun = stage.kill(leader)
    stage.kill(other)
    created = stage.try_create("while-lost", QUORUM_LOST_SECONDS)
    stage.expect("no metadata change is acknowledged without a majority", holds=not created)
    stage.run_for(max(0.0, begun + QUORUM_LOST_SECONDS - time.monotonic()))
    stage.measure("u_write", stage.load.write_gap(begun, time.monotonic()))
    stage.start(other)
    back = stage.wait_listening(other)
    stage.measure("t_recovery", max(0.0, stage.wait_controller(epoch, back)))
    stage.start(leader)
