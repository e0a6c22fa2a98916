"""What no signal and no proxy can do: power that goes, metadata not applied, clocks that jump."""

import time

from chaos.drills.catalog import drill
from chaos.live.stage import Stage
from kraftlog.drill_hooks import DURABLE

TOPICS = 5
AFTER_SECONDS = 1.0
METADATA_LAG = "metadata lag"
HOUR_MS, SECOND_MS = 3_600_000, 1_000
STROBES, STROBE_SECONDS = 10, 0.2


@drill(
    9,
    "all-power-loss",
    "all six lose their power, and what was not synced is gone",
    in_chaos=True,
    hooks=(DURABLE,),
    topic_config={"flush.before.ack": "true"},
)
def all_power_loss(stage: Stage) -> None:
    made = [stage.try_create(f"before-{number}", 30) for number in range(TOPICS)]
    stage.expect("metadata changes are acknowledged before", holds=all(made))
    stage.cut_power()
    begun = stage.power_on()
    stage.wait_for_writes(begun)
    stage.measure("t_up", time.monotonic() - begun)
    with stage.cluster.admin() as admin:
        found = set(admin.list_topics())
    lost = [f"before-{number}" for number in range(TOPICS) if f"before-{number}" not in found]
    stage.expect(f"all {TOPICS} topics are still there", holds=not lost)


@drill(
    31,
    "stale-metadata",
    "a leader sends heartbeats and does not apply what it hears",
    in_chaos=True,
    hooks=(),
)
def stale_metadata(stage: Stage) -> None:
    victim = stage.leader()
    stage.stall(victim)
    stage.expect("a change that it misses", holds=stage.try_create("missed", 30))
    missed = time.monotonic()
    stage.measure("t_fence", stage.wait_fenced(victim, missed))
    cause = _fence_cause(stage, victim)
    stage.expect(f"{victim} is fenced because of {METADATA_LAG}", holds=cause == METADATA_LAG)
    stage.wait_for_writes(time.monotonic())
    stage.run_for(AFTER_SECONDS)
    stage.expect(f"{victim} leads nothing", holds=stage.leader() != victim)
    stage.measure("u_write", stage.load.write_gap(missed, time.monotonic()))
    stage.resume_metadata(victim)
    node_id = stage.cluster.node_id(victim)
    stage.wait(lambda: node_id in stage.watcher.up(), f"{victim} is unfenced again")


def _fence_cause(stage: Stage, name: str) -> str:
    node_id = stage.cluster.node_id(name)
    with stage.cluster.admin() as admin:
        brokers = admin.describe_cluster().brokers
    return next((each.fence_cause for each in brokers if each.broker_id == node_id), "")


@drill(
    26,
    "clock-jump",
    "the wall clocks of the active controller and of a leader go wrong by an hour, then to and fro",
    hooks=(),
)
def clock_jump(stage: Stage) -> None:
    begun = time.monotonic()
    victims = [stage.controller(), stage.leader()]
    for jump_ms in (HOUR_MS, -HOUR_MS, *[SECOND_MS, -SECOND_MS] * STROBES):
        for name in victims:
            stage.jump_clock(name, jump_ms)
        stage.run_for(1.0 if abs(jump_ms) == HOUR_MS else STROBE_SECONDS)
    for name in victims:
        stage.right_clock(name)
    for name in stage.cluster.brokers:
        fenced = stage.watcher.fenced_at(stage.cluster.node_id(name), begun)
        stage.expect(f"{name} is not fenced", holds=fenced is None)
    stage.measure("u_write", stage.load.write_gap(begun, time.monotonic()))
