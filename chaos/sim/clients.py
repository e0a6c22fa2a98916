"""Clients that propose and read, and remember what they were told (M1 to M4).

They ask whoever thinks it leads, an old leader as gladly as the new one. All is judged against the
ledger, after the step in which it was said.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from chaos.sim.cluster import Cluster
from chaos.sim.node import Outcome, SimNode
from kraftlog._check import invariant

TICK_MS = 10.0
"""Times the number of nodes: every record costs each of them something."""
READ_CHANCE = 0.5
LOST_CHANCE = 0.02
"""A client that does not know who leads asks anybody."""
RECORDS_MAX = 3
LARGE_BYTES = 2_000
"""More than a batch may hold."""


class Workload(Protocol):
    """Whoever asks something of a cluster, and judges the answers."""

    acked: set[bytes]
    """What was acknowledged, as `propose` called it."""

    def begin(self) -> None: ...

    def end(self) -> None:
        """Ask no more."""
        ...

    def propose(self, node: SimNode) -> list[bytes]:
        """Ask this node for a change, also after the end; returns what will be in `acked`."""
        ...

    def judge(self) -> None:
        """What was said in the step that has just ended."""
        ...

    def check_end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Proposal:
    values: tuple[bytes, ...]
    floor: int
    """All below was acknowledged or read before this was proposed."""
    session: tuple[int, int, int]
    """Node, life and epoch: the acknowledgements of one leader come in order."""


@dataclass(frozen=True, slots=True)
class Ack:
    proposal: Proposal
    offset: int


@dataclass(frozen=True, slots=True)
class Read:
    name: str
    floor: int
    end: int
    digest: object


class Clients:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._dice = cluster.dice("clients")
        self._interval_ms = TICK_MS * len(cluster.nodes)
        self._values = 0
        self._unknown: list[Proposal] = []
        self._refused: list[Proposal] = []
        self._floor = 0
        self._last_ack: dict[tuple[int, int, int], int] = {}
        self._unjudged: list[Ack | Read] = []
        self._over = False
        self.acked: set[bytes] = set()

    def begin(self) -> None:
        self._cluster.schedule.later(self._interval_ms, self._tick)

    def end(self) -> None:
        self._over = True

    def _tick(self) -> None:
        if self._over:
            return
        dice = self._dice
        self._cluster.schedule.later(self._interval_ms * 2 * dice.random(), self._tick)
        asked = self._cluster.leaders
        if dice.random() < LOST_CHANCE:
            asked = self._cluster.alive
        if asked:
            self.propose(dice.choice(asked), batches=dice.choice((1, 1, 2)))
        if asked and dice.random() < READ_CHANCE:
            self.read(dice.choice(asked))

    # -- asking

    def propose(self, node: SimNode, *, batches: int = 1) -> list[bytes]:
        """Some values, as one or more proposals that go together; returns all of them."""
        if node.core is None:
            return []
        # Once in a while somebody is a step behind: the epoch is over, or never was.
        epoch = node.core.epoch - (self._dice.random() < 0.02)
        proposals = []
        for _ in range(batches):
            count = self._dice.randint(1, RECORDS_MAX)
            values = tuple(self._new_value() for _ in range(count))
            proposal = Proposal(values, self._floor, (node.node_id, node.life, epoch))
            proposals.append((list(values), partial(self._on_proposed, proposal)))
        self._cluster.trace.add(f"{node.name} is asked to append", [each for each, _ in proposals])
        node.propose(proposals, epoch=epoch)
        return [value for values, _ in proposals for value in values]

    def _new_value(self) -> bytes:
        self._values += 1
        value = b"v%d" % self._values
        return value.ljust(LARGE_BYTES) if self._dice.random() < 0.01 else value

    def read(self, node: SimNode) -> None:
        node.read(partial(self._on_read, node, self._floor))

    # -- being told

    def _on_proposed(self, proposal: Proposal, outcome: Outcome) -> None:
        match outcome:
            case "refused":
                self._refused.append(proposal)
                self._cluster.sightings.note("proposal refused")
            case "unknown":
                self._unknown.append(proposal)
            case int() as offset:
                self._unjudged.append(Ack(proposal, offset))

    def _on_read(self, node: SimNode, floor: int, is_ready: bool) -> None:
        if is_ready and node.driver:
            applied = node.driver.applier.applied_offset
            self._unjudged.append(Read(node.name, floor, applied, node.machine.digest))

    # -- judging

    def judge(self) -> None:
        """What was said in the step that has just ended."""
        said, self._unjudged = self._unjudged, []
        for each in said:
            if isinstance(each, Ack):
                self._judge_ack(each)
            else:
                self._judge_read(each)

    def _judge_ack(self, ack: Ack) -> None:
        proposal, ledger = ack.proposal, self._cluster.checker.ledger
        for offset, value in enumerate(proposal.values, ack.offset):
            there = ledger.offset_of.get(value) == offset
            invariant(there, "M1 acknowledged, not committed there", value=value, offset=offset)
            invariant(value not in self.acked, "M3 acknowledged twice", value=value)
            self.acked.add(value)
        later = ack.offset >= proposal.floor
        invariant(later, "M1 below what was done before it", ack=ack)
        in_order = ack.offset > self._last_ack.get(proposal.session, -1)
        invariant(in_order, "M1 acknowledged out of order", ack=ack)
        self._last_ack[proposal.session] = ack.offset
        self._floor = max(self._floor, ack.offset + len(proposal.values))

    def _judge_read(self, read: Read) -> None:
        fresh = read.end >= read.floor
        invariant(fresh, "M2 a read misses what was done before it", read=read)
        same = read.digest == self._cluster.checker.ledger.digest_at(read.end)
        invariant(same, "M2 a read of what was not committed", read=read)
        self._floor = max(self._floor, read.end)
        self._cluster.sightings.note("linearizable read")

    def check_end(self) -> None:
        """M4: what was refused has left no trace. M3: what is unknown is there once or not at all,
        which the ledger has seen to.
        """
        ledger = self._cluster.checker.ledger
        for proposal in self._refused:
            trace = [value for value in proposal.values if value in ledger.offset_of]
            invariant(not trace, "M4 refused, and yet committed", values=trace)
        for proposal in self._unknown:
            held = [value in ledger.offset_of for value in proposal.values]
            invariant(len(set(held)) == 1, "M10 a proposal in part", proposal=proposal)
            fate = "was committed" if held[0] else "is gone"
            self._cluster.sightings.note(f"proposal with unknown outcome {fate}")
