"""Disks that are full, or that fail to sync."""

import os
import time
from pathlib import Path

from chaos.drills.catalog import drill
from chaos.drills.scripts.brokers import judge_move
from chaos.drills.scripts.controllers import judge_takeover
from chaos.live import small_disk, syscalls
from chaos.live.stage import Stage

DISK_BYTES = 24 << 20
SYNC_FAILED_EXIT_CODE = 74


@drill(
    20,
    "fsync-eio",
    "fdatasync fails once with EIO on the active controller, then on a leader",
    topic_config={"flush.before.ack": "true"},
    needs=syscalls.missing,
)
def fsync_eio(stage: Stage) -> None:
    epoch, controller = stage.epoch, stage.controller()
    ended = _fail_sync(stage, controller)
    judge_takeover(stage, epoch, ended)
    stage.start(controller)
    stage.cluster.wait_healthy(60, in_sync=True)
    leader = stage.leader()
    judge_move(stage, _fail_sync(stage, leader))
    stage.start(leader)


def _fail_sync(stage: Stage, name: str) -> float:
    """The moment at which the node has ended because of it."""
    with syscalls.failing_sync(stage.cluster.pid(name), str(stage.directory.path)):
        stage.fault("fdatasync EIO", name)
        stage.wait(lambda: not stage.cluster.is_running(name), f"{name} ends")
        ended = time.monotonic()
    code = stage.cluster.exit_code(name)
    stage.expect(f"{name} stops at a failed sync", holds=code == SYNC_FAILED_EXIT_CODE)
    said = "EIO" in stage.cluster.logs(name)
    stage.expect(f"{name} says why", holds=said)
    stage.note_ended(name)
    return ended


@drill(
    19,
    "disk-full",
    "the disk of a leader fills up, then that of the active controller",
    needs=small_disk.missing,
)
def disk_full(stage: Stage) -> None:
    leader = stage.leader()
    _onto_small_disk(stage, leader)
    stage.wait(lambda: stage.leader() == leader or _elect(stage), f"{leader} leads again")
    begun = _fill(stage, leader)
    judge_move(stage, begun)
    _empty(stage, leader)
    for name in stage.cluster.controllers:
        _onto_small_disk(stage, name)
    epoch, controller = stage.epoch, stage.controller()
    begun = _fill(stage, controller)
    stage.expect(
        "a change of the metadata is acknowledged by somebody", holds=stage.try_create("full", 30)
    )
    stage.say(f"epoch {epoch} -> {stage.epoch}")
    _empty(stage, controller)


def _elect(stage: Stage) -> bool:
    """Leadership goes back to the first replica; whether it did is looked at again."""
    with stage.cluster.admin() as admin:
        admin.elect_leaders()
    return False


def _onto_small_disk(stage: Stage, name: str) -> None:
    stage.stop(name)
    small_disk.move(Path(stage.cluster.data_path(name)), DISK_BYTES)
    stage.start(name)
    stage.cluster.wait_healthy(60, in_sync=True)


def _fill(stage: Stage, name: str) -> float:
    begun = stage.fault("disk full", name)
    small_disk.fill(Path(stage.cluster.data_path(name)))
    return begun


def _empty(stage: Stage, name: str) -> None:
    small_disk.empty(Path(stage.cluster.data_path(name)))
    if not stage.cluster.is_running(name):
        said = stage.cluster.logs(name)
        named = "ENOSPC" in said or os.strerror(28) in said
        stage.expect(f"{name} stopped and named the full disk", holds=named)
        stage.note_ended(name)
        stage.start(name)
    stage.healed("disk full", name)
    stage.cluster.wait_healthy(60, in_sync=True)
