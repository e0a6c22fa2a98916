"""Files of a node are damaged or gone."""

import shutil
import time
from pathlib import Path

from chaos.drills.catalog import drill
from chaos.live import damage
from chaos.live.stage import TOPIC, Stage
from kraftlog.admin_types import Voter

PARTITION = f"{TOPIC}-0"
QUORUM_STATE = "__cluster_metadata-0/quorum-state"


@drill(22, "wipe-broker", "rm -rf the directory of a broker, which then comes back")
def wipe_broker(stage: Stage) -> None:
    victim = stage.leader()
    stage.kill(victim)
    stage.wait_fenced(victim, time.monotonic() - 1.0)
    directory = Path(stage.cluster.data_path(victim))
    before = damage.directory_id(directory)
    stage.fault("wipe", victim)
    shutil.rmtree(directory)
    stage.start(victim)
    stage.cluster.wait_healthy(60, in_sync=True)
    stage.expect("it has a new directory id", holds=damage.directory_id(directory) != before)


@drill(22, "wipe-controller", "rm -rf a controller: an observer, then removed and added as voter")
def wipe_controller(stage: Stage) -> None:
    _wipe_voter(stage, stage.controller_followers()[0])


def _wipe_voter(stage: Stage, victim: str) -> None:
    """Its old key is taken out, its new one becomes a voter."""
    if stage.cluster.is_running(victim):
        stage.kill(victim)
    directory = Path(stage.cluster.data_path(victim))
    old = _voter(stage, victim)
    stage.fault("wipe", victim)
    shutil.rmtree(directory)
    stage.format_controller(victim)
    stage.start(victim)
    stage.wait_listening(victim)
    new = Voter(old.node_id, damage.directory_id(directory), stage.cluster.address(victim))
    stage.expect("it has a new directory id", holds=new.directory_id != old.directory_id)
    with stage.cluster.admin() as admin:
        voters = {each.voter.directory_id for each in admin.describe_quorum().voters}
        stage.expect("it came back as no voter", holds=new.directory_id not in voters)
        admin.remove_voter(old, timeout="30s")
        admin.add_voter(new, timeout="30s")
        voters = {each.voter.directory_id for each in admin.describe_quorum().voters}
        stage.expect("it is a voter again", holds=new.directory_id in voters)


def _voter(stage: Stage, name: str) -> Voter:
    node_id = stage.cluster.node_id(name)
    with stage.cluster.admin() as admin:
        voters = admin.describe_quorum().voters
    return next(each.voter for each in voters if each.voter.node_id == node_id)


@drill(21, "corrupt-tail", "garbage at the end of a log of a broker that is down")
def corrupt_tail(stage: Stage) -> None:
    victim = stage.leader()
    stage.kill(victim)
    path = damage.last_segment(Path(stage.cluster.data_path(victim)) / PARTITION)
    stage.fault("corrupt tail", f"{victim} {path.name}")
    damage.append_garbage(path, stage.dice)
    stage.start(victim)
    stage.cluster.wait_healthy(60, in_sync=True)


@drill(21, "corrupt-middle", "a flipped bit in the middle of a log of a broker that was killed")
def corrupt_middle(stage: Stage) -> None:
    """What it has below the damage stays, the rest comes from the others; the judge of files
    compares the replicas byte for byte afterwards.
    """
    victim = stage.leader()
    stage.kill(victim)
    stage.wait_fenced(victim, time.monotonic() - 1.0)
    path = damage.last_segment(Path(stage.cluster.data_path(victim)) / PARTITION)
    stage.fault("corrupt middle", f"{victim} {path.name}")
    damage.flip_bit(path, stage.dice)
    stage.start(victim)
    stage.cluster.wait_healthy(60, in_sync=True)


@drill(21, "corrupt-quorum-state", "a flipped bit in the vote of a controller that is down")
def corrupt_quorum_state(stage: Stage) -> None:
    victim = stage.controller_followers()[0]
    stage.kill(victim)
    path = Path(stage.cluster.data_path(victim)) / QUORUM_STATE
    stage.fault("corrupt quorum-state", victim)
    damage.cut_in_half(path)
    stage.start(victim)
    stage.expect_refusal(victim, f"{path.name} makes no sense")
    _wipe_voter(stage, victim)
