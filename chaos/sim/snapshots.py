"""Snapshots as a node takes them: the state of one moment, written off the loop, heard of later."""

from random import Random

from chaos.sim.cluster import Cluster
from chaos.sim.node import SimNode
from kraftlog.errors import StorageError
from quorum.core.messages import SnapshotId, VoterSet
from quorum.driver import Driver

WRITE_MS = (1.0, 300.0)


def take_snapshot(cluster: Cluster, node: SimNode, dice: Random) -> None:
    """Three steps with time between them: remember the state, write it, tell the core."""

    def remember(driver: Driver) -> None:
        snapshot, log = driver.applier.snapshot_id, driver.core.log
        if snapshot.end_offset <= log.start_offset or snapshot in log.snapshots:
            return
        cluster.trace.add(f"{node.name} takes snapshot {snapshot}")
        voters, values = log.voters_at(snapshot.end_offset), list(node.machine.dump())
        digest = node.machine.dumped_digest()
        cluster.checker.ledger.check_snapshot(snapshot, digest, voters)
        _write_later(cluster, node, dice, snapshot, voters=voters, values=values)

    node.act(remember)


def _write_later(
    cluster: Cluster,
    node: SimNode,
    dice: Random,
    snapshot: SnapshotId,
    *,
    voters: VoterSet,
    values: list[bytes],
) -> None:
    written: list[SnapshotId] = []

    def write(_driver: Driver) -> None:
        try:
            if node.store:
                node.store.write_snapshot(snapshot, voters, values)
                written.append(snapshot)
        except (StorageError, OSError) as error:
            cluster.trace.add(f"{node.name} cannot write snapshot {snapshot}", error)
            cluster.sightings.note("snapshot could not be written")

    def tell(driver: Driver) -> None:
        if written:
            driver.snapshot_written(snapshot)
            cluster.sightings.note("snapshot written")

    written_at_ms, told_at_ms = sorted(dice.uniform(*WRITE_MS) for _ in range(2))
    node.in_this_life(written_at_ms, lambda: node.act(write))
    node.in_this_life(told_at_ms, lambda: node.act(tell))


def drop_log(cluster: Cluster, node: SimNode, dice: Random) -> None:
    """Retention: the log begins at one of the node's snapshots, and old segments go."""

    def drop(driver: Driver) -> None:
        log = driver.core.log
        behind = [each for each in log.snapshots if each.end_offset > log.start_offset]
        if behind:
            snapshot = dice.choice(behind)
            cluster.trace.add(f"{node.name} drops its log below {snapshot}")
            driver.drop_log_below(snapshot)
        if node.store:
            node.store.purge()

    node.act(drop)
