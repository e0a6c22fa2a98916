"""Disks that are full, or that fail to sync."""

import errno
import os
import time
from pathlib import Path

from chaos.drills.catalog import drill
from chaos.drills.scripts.brokers import judge_move
from chaos.drills.scripts.controllers import judge_takeover
from chaos.live import small_disk, syscalls
from chaos.live.stage import Stage
from kraftlog.drill_hooks import DISK, FAIL_SYNC, FULL, SLOW_SYNC

DISK_BYTES = 24 << 20
SYNC_FAILED_EXIT_CODE = 74
SLOW_SYNC_MS = 150
SLOW_SECONDS = 10.0


@drill(
    20,
    "fsync-eio",
    "every sync of the active controller fails with EIO, then those of a leader",
    hooks=(DISK,),
    topic_config={"flush.before.ack": "true"},
)
def fsync_eio(stage: Stage) -> None:
    epoch, controller = stage.epoch, stage.controller()
    begun = _fail_sync(stage, controller)
    judge_takeover(stage, epoch, begun)
    _bring_back(stage, controller)
    leader = stage.leader()
    judge_move(stage, _fail_sync(stage, leader))
    stage.start(leader)


def _fail_sync(stage: Stage, name: str) -> float:
    """Since when it fails; the node has ended."""
    begun = stage.break_disk(name, FAIL_SYNC)
    _expect_end(stage, name)
    stage.mend_disk(name, FAIL_SYNC)
    return begun


@drill(
    20,
    "fsync-eio-strace",
    "the same by strace: not a line of the servers knows of it",
    needs=syscalls.missing,
    topic_config={"flush.before.ack": "true"},
)
def fsync_eio_strace(stage: Stage) -> None:
    """How long it takes to take hold of a process is not known, so a takeover is not timed."""
    controller = stage.controller()
    _fail_sync_by_strace(stage, controller)
    _bring_back(stage, controller)
    leader = stage.leader()
    judge_move(stage, _fail_sync_by_strace(stage, leader))
    stage.start(leader)


def _fail_sync_by_strace(stage: Stage, name: str) -> float:
    """About the moment at which the node has ended."""
    with syscalls.failing_sync(stage.cluster.pid(name), str(stage.directory.path)):
        stage.fault("fdatasync EIO", name)
        _expect_end(stage, name)
        return time.monotonic()


def _expect_end(stage: Stage, name: str) -> None:
    """Something is synced, and so the node ends, and says why."""

    def has_ended() -> bool:
        if stage.cluster.is_running(name):
            stage.try_create(f"sync-{time.monotonic_ns()}", 30)
        return not stage.cluster.is_running(name)

    stage.wait(has_ended, f"{name} ends")
    code = stage.cluster.exit_code(name)
    stage.expect(f"{name} stops at a failed sync", holds=code == SYNC_FAILED_EXIT_CODE)
    stage.expect(f"{name} says why", holds="EIO" in stage.cluster.logs(name))
    stage.note_ended(name)


def _bring_back(stage: Stage, name: str) -> None:
    stage.start(name)
    stage.cluster.wait_healthy(60, in_sync=True)


@drill(
    16,
    "slow-disk",
    "every sync of two followers, a controller and a broker, takes 150 ms longer, 10 s",
    hooks=(DISK,),
    topic_config={"flush.before.ack": "true"},
)
def slow_disk(stage: Stage) -> None:
    broker = next(name for name in stage.cluster.brokers if name != stage.leader())
    begun = time.monotonic()
    for name in (stage.controller_followers()[0], broker):
        stage.break_disk(name, SLOW_SYNC, str(SLOW_SYNC_MS))
    stage.run_for(SLOW_SECONDS)
    stage.measure("u_write", stage.load.write_gap(begun, time.monotonic()))
    for name in (stage.controller_followers()[0], broker):
        stage.mend_disk(name, SLOW_SYNC)


@drill(
    19,
    "no-space",
    "every write of a leader fails with ENOSPC, then those of the active controller",
    hooks=(DISK,),
)
def no_space(stage: Stage) -> None:
    leader = stage.leader()
    judge_move(stage, stage.break_disk(leader, FULL))
    _make_room(stage, leader)
    epoch, controller = stage.epoch, stage.controller()
    begun = stage.break_disk(controller, FULL)
    _expect_change(stage)
    judge_takeover(stage, epoch, begun)
    _make_room(stage, controller)


def _expect_change(stage: Stage) -> None:
    made = stage.try_create("full", 30)
    stage.expect("a change of the metadata is acknowledged by somebody", holds=made)


def _make_room(stage: Stage, name: str) -> None:
    stage.mend_disk(name, FULL)
    _expect_fail_stop(stage, name)
    stage.cluster.wait_healthy(60, in_sync=True)


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
    controller = stage.controller()
    _fill(stage, controller)
    _expect_change(stage)  # by whomever: what is left of a last block may be room enough
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
    _expect_fail_stop(stage, name)
    stage.healed("disk full", name)
    stage.cluster.wait_healthy(60, in_sync=True)


def _expect_fail_stop(stage: Stage, name: str) -> None:
    """It either goes on, or has stopped, said why, and can be started again."""
    if stage.cluster.is_running(name):
        return
    said = stage.cluster.logs(name)
    named = "ENOSPC" in said or os.strerror(errno.ENOSPC) in said
    stage.expect(f"{name} stopped and named the full disk", holds=named)
    stage.note_ended(name)
    stage.start(name)
