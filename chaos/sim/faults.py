"""What goes wrong, each class of faults at its own rate and with its own dice.

Snapshots are here as well: no fault, but they come at times that nobody chose.
"""

import errno
from collections.abc import Callable
from random import Random

from chaos.sim.atlas import Atlas
from chaos.sim.cluster import Cluster
from chaos.sim.damage import flip_election_bit, flip_flushed_bit, flip_snapshot_bit
from chaos.sim.network import Link
from chaos.sim.node import SimNode
from chaos.sim.operators import Operators
from chaos.sim.snapshots import drop_log, take_snapshot
from chaos.sim.strangers import Strangers
from storage.model_disk import Operation

OPERATIONS_MAX = 30
"""Within so many operations or effects a planned death comes."""
CUT_MS = (200.0, 4_000.0)
CLOG_MS = (100.0, 2_000.0)
RIVALS_MS = (600.0, 1_500.0)
RIVALS_APART_MS = 500.0
PAUSE_MS = (50.0, 2_500.0)
GRACE_MS = (5.0, 200.0)
WALL_JUMP_MS = 3_600_000
DISK_ERRORS: tuple[tuple[Operation, int], ...] = (
    ("pwrite", errno.ENOSPC),
    ("create", errno.ENOSPC),
    ("pwrite", errno.EIO),
    ("pread", errno.EIO),
    ("open", errno.EIO),
    ("sync", errno.EIO),
    ("sync_dir", errno.EIO),
    ("rename", errno.EIO),
    ("truncate", errno.EIO),
    ("remove", errno.EIO),
)

Fault = Callable[[Random], None]


class Faults:
    def __init__(self, cluster: Cluster, atlas: Atlas, operators: Operators) -> None:
        self._cluster = cluster
        self._atlas = atlas
        self._operators = operators
        self._strangers = Strangers(cluster)
        self._over = False
        self._acts: dict[str, Fault] = {
            "cuts": self._cut,
            "clogs": self._clog,
            "rivals": self._make_rivals,
            "crashes": self._crash,
            "power_cuts": self._power_cut,
            "blackouts": self._blackout,
            "pauses": self._pause,
            "clock_jumps": self._jump_clock,
            "disk_errors": self._disk_error,
            "damage": self._damage,
            "wipes": self._wipe,
            "snapshots": self._snapshot,
            "membership": operators.change_voters,
            "moves": self._move,
            "strangers": self._strangers.call,
        }

    def begin(self) -> None:
        if self._cluster.options.strength("rivals"):
            self._make_rivals(self._cluster.dice("first rivals"))
        for name, act in self._acts.items():
            rate = self._cluster.options.strength(name)
            if rate:
                self._repeat(act, rate, self._cluster.dice(name))

    def _repeat(self, act: Fault, rate: float, dice: Random) -> None:
        def fire() -> None:
            if not self._over:
                act(dice)
                self._repeat(act, rate, dice)

        self._cluster.schedule.later(1000 * dice.expovariate(rate), fire)

    def end(self) -> None:
        """Nothing goes wrong any more, and what did is mended."""
        self._over = True
        self._operators.calm_down()
        self._cluster.trace.add("faults end")
        self._cluster.network.heal()
        self._cluster.calm_disks()
        for node in self._cluster.nodes:
            if node.paused:
                node.resume()
            if node.is_up and node.is_rotten:
                node.die()  # others have told what it serves: an operator has a look

    def _victim(self, dice: Random) -> SimNode | None:
        """Leaders are worth more: half of the time one of them."""
        leaders, alive = self._cluster.leaders, self._cluster.alive
        if leaders and dice.random() < 0.5:
            return dice.choice(leaders)
        return dice.choice(alive) if alive else None

    # -- the network

    def _links(self, dice: Random) -> list[Link]:
        """Some links of one machine, or between two halves; one way or both."""
        ids = [node.node_id for node in self._cluster.nodes]
        victim = self._victim(dice)
        here = [victim.node_id] if victim else []
        if not here or dice.random() < 0.3:
            here = [each for each in ids if dice.random() < 0.5]
        there = [each for each in ids if each not in here]
        if dice.random() < 0.3:
            there = [each for each in there if dice.random() < 0.5]
        out, back = dice.choice(((True, True), (True, False), (False, True)))
        links = [(one, other) for one in here for other in there if out]
        return links + [(other, one) for one in here for other in there if back]

    def _cut(self, dice: Random) -> None:
        self._block(dice, keeps=False)

    def _clog(self, dice: Random) -> None:
        self._block(dice, keeps=True)

    def _block(self, dice: Random, *, keeps: bool) -> None:
        network, links = self._cluster.network, self._links(dice)
        self._cluster.trace.add("clog" if keeps else "cut", links)
        block = network.block(links, keeps=keeps)

        def mend() -> None:
            if block.held:
                self._cluster.sightings.note("message held back by a clog")
            network.mend(block)

        self._cluster.schedule.later(dice.uniform(*(CLOG_MS if keeps else CUT_MS)), mend)

    def _make_rivals(self, dice: Random) -> None:
        """Nobody hears anybody, so all lose their leader, if they had one, and two do not hear each
        other even after that. What all asked for meanwhile arrives at once: with logs of the same
        length, as when a cluster begins, the rest has to choose between two candidates.
        """
        leader, nodes = self._cluster.leader, self._cluster.nodes
        if leader is not None:
            leader.die()
        ids = [node.node_id for node in nodes]
        if len(ids) < 3:
            return
        # Whoever has the smaller id goes on where two meet, so these two will.
        one, other = ids[:2]
        network, later = self._cluster.network, self._cluster.schedule.later
        self._cluster.trace.add(f"n{one} and n{other} are rivals")
        apart = network.block([(one, other), (other, one)])
        deaf = network.block([(a, b) for a in ids for b in ids if a != b], keeps=True)
        wait_ms = dice.uniform(*RIVALS_MS)
        later(wait_ms, lambda: network.mend(deaf))
        later(wait_ms + RIVALS_APART_MS, lambda: network.mend(apart))

    # -- processes and machines

    def _crash(self, dice: Random) -> None:
        """At once, between two of the next effects, inside a disk operation, or in good order."""
        node = self._victim(dice)
        if node is None or not self._cluster.may_crash(node):
            return
        after = dice.randrange(OPERATIONS_MAX)
        match dice.randrange(4):
            case 0:
                node.die()
            case 1:
                node.dies_in = after
            case 2:
                node.disk.kill_after = node.disk.op_count + after
            case _:
                node.act(lambda driver: driver.resign())
                node.in_this_life(dice.uniform(*GRACE_MS), node.shut_down)

    def _power_cut(self, dice: Random) -> None:
        """At once, or inside one of the next operations on the disk."""
        node = self._victim(dice)
        if node is None:
            return
        if dice.random() < 0.5:
            node.disk.crash_after = node.disk.op_count + dice.randrange(OPERATIONS_MAX)
        else:
            node.die(power=True)

    def _blackout(self, _dice: Random) -> None:
        """The whole room at once."""
        self._cluster.sightings.note("power cut for all")
        for node in self._cluster.alive:
            node.die(power=True)

    def _pause(self, dice: Random) -> None:
        node = self._victim(dice)
        if node is None or node.paused:
            return
        node.paused = True
        was_leader = node.is_leader
        self._cluster.trace.add(f"{node.name} pauses")

        def resume() -> None:
            if self._over:
                return
            if was_leader and self._cluster.leader is not node:
                self._cluster.sightings.note("leader woke up deposed")
            self._cluster.trace.add(f"{node.name} goes on")
            node.resume()

        node.in_this_life(dice.uniform(*PAUSE_MS), resume)

    def _jump_clock(self, dice: Random) -> None:
        node = dice.choice(self._cluster.nodes)
        node.clock.jump_wall(dice.randint(-WALL_JUMP_MS, WALL_JUMP_MS))

    # -- disks

    def _disk_error(self, dice: Random) -> None:
        """One operation fails, and so the process ends; the next one finds the disk in order."""
        node = self._victim(dice)
        if node is not None:
            node.disk_error = dice.choice(DISK_ERRORS)
            self._cluster.trace.add(f"{node.name} will fail", node.disk_error)

    def _damage(self, dice: Random) -> None:
        """A bit flips in what was durable, mostly while the process is down."""
        node = self._victim(dice)
        keepers = [each for each in self._cluster.alive if each.core and each.core.log.snapshots]
        leaders = [each for each in keepers if each.is_leader]
        if keepers and dice.random() < 0.5:
            self._rot(dice.choice(leaders or keepers), dice)
        elif node is not None and self._atlas.may_lose(node.key):
            self._damage_disk(node, dice)

    def _rot(self, node: SimNode, dice: Random) -> None:
        """Nobody knows of it until the process starts again, or somebody who has lost everything
        asks for that snapshot.
        """
        if not self._atlas.may_lose(node.key):
            return
        node.rotten = flip_snapshot_bit(node.disk, dice)
        self._cluster.trace.add(f"{node.name} rots", node.rotten)
        others = [each for each in self._cluster.alive if each is not node]
        dice.shuffle(others)
        for each in others:
            if self._atlas.may_lose(node.key, each.key):
                self._cluster.replace_disk(each)
                return

    def _damage_disk(self, node: SimNode, dice: Random) -> None:
        """It must not come back with it."""
        flushed = node.store.log.flushed_offset if node.store else 0
        node.die()
        match dice.randrange(3):
            case 0:
                is_damaged = flip_flushed_bit(node.disk, flushed, dice)
            case 1:
                is_damaged = flip_snapshot_bit(node.disk, dice) is not None
            case _:
                is_damaged = flip_election_bit(node.disk, dice)
        if is_damaged:
            self._cluster.trace.add(f"{node.name} is damaged")
            self._cluster.lost.add(node.key)
            node.is_damaged = True

    def _wipe(self, dice: Random) -> None:
        node = self._victim(dice)
        if node is not None and self._atlas.may_lose(node.key):
            self._cluster.replace_disk(node)

    # -- what is no fault

    def _snapshot(self, dice: Random) -> None:
        node = self._victim(dice)
        if node is None:
            return
        if dice.random() < 0.6:
            take_snapshot(self._cluster, node, dice)
        else:
            drop_log(self._cluster, node, dice)

    def _move(self, dice: Random) -> None:
        """A machine gets another address, over a restart. One at a time, as with a lost disk."""
        node = self._victim(dice)
        if node is None or not self._cluster.may_crash(node):
            return
        if self._atlas.may_lose(node.key):
            self._cluster.trace.add(f"{node.name} moves")
            node.die()
            node.port += 1
