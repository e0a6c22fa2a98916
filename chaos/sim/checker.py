"""The rules Q1 to Q15 of docs/INVARIANTS.md, checked on the node that has just moved.

Cheap rules run after every event. Those that read a whole log run when a node starts, when its log
is cut, when it is elected, and at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chaos.sim.ledger import Entry, Ledger, Mirror
from chaos.sim.node import SimNode
from chaos.sim.sightings import Sightings
from kraftlog._check import invariant
from quorum.core.config import FAST
from quorum.core.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    Refusal,
    ReplicaKey,
    ReplicaRequest,
    Reply,
    Request,
    SnapshotId,
    VoteReply,
    VoteRequest,
    VoterSet,
)
from quorum.core.raft import RaftCore
from quorum.core.state import Candidate, ElectionState, Follower, Leader, Prospective, Resigned
from quorum.core.tally import majority
from quorum.driver import Driver
from quorum.store import Store

_RARE_REFUSALS: Mapping[tuple[bool, Refusal | None], str] = {
    (False, Refusal.LOG_BEHIND): "vote refused: log behind",
    (False, Refusal.ALREADY_VOTED): "vote refused: already voted",
    (True, Refusal.LEADER_ALIVE): "pre-vote refused: leader alive",
    (True, Refusal.WRONG_RECIPIENT): "asked a voter whose disk was replaced",
}


@dataclass(slots=True)
class Seen:
    """What was last observed of one replica, over all its lives."""

    mirror: Mirror
    life: int = -1
    election: ElectionState = field(default_factory=ElectionState)
    version: int = 0
    high_watermark: int = 0
    flushed: int = 0
    """What its log says is durable."""
    leads: int = -1
    """The epoch that it leads, if it does."""
    led_voters: VoterSet = field(default_factory=VoterSet)
    heard: dict[ReplicaKey, int] = field(default_factory=dict)
    """While it leads: when each voter last fetched, by its own clock."""
    applied: int = -1
    loaded: int = 0
    """How many snapshots its state machine has loaded in this life."""
    download: SnapshotId | None = None
    rejections: int = 0
    rejected: tuple[ReplicaKey, SnapshotId | None, int] | None = None
    """The last download that made no sense, whose it was, and when that was found."""


class Checker:
    def __init__(self, ledger: Ledger, sightings: Sightings) -> None:
        self.ledger = ledger
        self.sightings = sightings
        self._leaders: dict[int, tuple[ReplicaKey, int]] = {}
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self._seen: dict[ReplicaKey, Seen] = {}
        self._seen_nodes: dict[SimNode, Seen] = {}
        """The same: a node is found faster than its key."""
        self._candidates: set[ReplicaKey] = set()

    def _seen_of(self, node: SimNode) -> Seen:
        seen = self._seen_nodes.get(node)
        if seen is None:
            seen = self._seen_nodes[node] = self._seen[node.key] = Seen(Mirror(self.ledger))
        return seen

    # -- one node has moved

    def on_step(self, node: SimNode) -> None:
        if node.driver is None or node.store is None:
            return
        core, seen = node.driver.core, self._seen_of(node)
        if seen.life != node.life:
            self._check_start(node, core, node.store, seen)
        self._check_election_state(node, core, node.store, seen)
        self._check_log(node, core, node.store, seen)
        seen.flushed = node.store.log.flushed_offset
        led_before = seen.leads == core.epoch  # a leader that commits its removal resigns at once
        self._check_role(node, core, node.store, seen)
        self._check_watermark(node, core, seen, leads=led_before or core.is_leader)
        self._check_state(node, node.driver, seen)
        self._note_rare(node, core, seen)

    def on_death(self, node: SimNode) -> None:
        """Killed in the middle of a step: others may have heard already what it decided."""
        self._candidates.discard(node.key)
        core, seen = node.core, self._seen_of(node)
        if core and seen.leads == core.epoch:
            end = min(core.high_watermark, seen.mirror.end)
            self.ledger.commit(seen.mirror.between(seen.high_watermark, end), node.name)

    def _check_start(self, node: SimNode, core: RaftCore, store: Store, seen: Seen) -> None:
        """Q6: what was durable and committed has survived whatever ended the last life."""
        invariant(not node.is_damaged, "Q15 runs on damaged files", node=node.name)
        lost = seen.mirror.reload(store)
        for entry in lost:
            if entry.next_offset <= seen.flushed and self.ledger.is_committed(entry):
                invariant(False, "Q6 a committed record vanished", node=node.name, entry=entry)
        if lost and node.is_broker:
            self.sightings.note("broker lost its tail")
        if isinstance(core.role, Resigned):
            self.sightings.note("restarted in an epoch that it had led")
        elif isinstance(core.role, Candidate):
            self.sightings.note("restarted as a candidate")
        seen.life, seen.version, seen.leads, seen.applied = node.life, core.log.version, -1, -1
        seen.loaded, seen.download = node.machine.snapshots_loaded, None
        seen.rejections, seen.rejected = 0, None
        snapshot = core.log.latest_snapshot
        seen.high_watermark = snapshot.end_offset if snapshot else 0
        self.ledger.commit(seen.mirror.between(0, seen.high_watermark), node.name)

    def _check_election_state(
        self, node: SimNode, core: RaftCore, store: Store, seen: Seen
    ) -> None:
        election = core.election
        if election == seen.election:
            return
        facts = {"node": node.name, "was": seen.election, "now": election, "disk": store.election}
        invariant(election.epoch >= seen.election.epoch, "Q2 an epoch fell", **facts)
        invariant(store.election == election, "Q2 memory is ahead of disk", **facts)
        seen.election = election
        if election.voted_key:
            self._note_vote(node, election.epoch, election.voted_key)

    def _note_vote(self, node: SimNode, epoch: int, candidate: ReplicaKey) -> None:
        voted = self._votes.setdefault((node.key, epoch), candidate)
        one_vote = voted == candidate
        invariant(one_vote, "Q3 two votes", node=node.name, epoch=epoch, a=voted, b=candidate)

    # -- its log

    def _check_log(self, node: SimNode, core: RaftCore, store: Store, seen: Seen) -> None:
        log, mirror = core.log, seen.mirror
        agree = (store.log.start_offset, store.log.end_offset) == (log.start_offset, log.end_offset)
        invariant(agree, "Q4 core and store differ", node=node.name, core=log)
        is_durable = log.flushed_offset <= _durable_end(store)
        invariant(is_durable, "Q7 a flush that was none", node=node.name, core=log)
        if log.version != seen.version:
            seen.version = log.version
            self._check_cut(node, core, mirror.reload(store), seen)
        if log.start_offset > mirror.start:
            mirror.drop_below(log.start_offset)
            self.sightings.note("log start moved")
        if log.end_offset > mirror.end:
            mirror.extend(store)
        if log.start_offset > 0:
            held = log.snapshots and log.snapshots[0].end_offset >= log.start_offset
            invariant(bool(held), "Q11 no snapshot behind the log start", node=node.name, log=log)

    def _check_cut(self, node: SimNode, core: RaftCore, gone: list[Entry], seen: Seen) -> None:
        """Who still follows an older leader may cut what a later one has committed with others, and
        gets it back from that one.
        """
        facts = {"node": node.name, "gone": gone, "high_watermark": core.high_watermark}
        kept = not any(self.ledger.is_committed(entry, core.epoch) for entry in gone)
        invariant(kept, "Q6 a committed record was cut", **facts)
        invariant(seen.leads != core.epoch, "Q9 a leader cut its log", **facts)
        if gone:
            self.sightings.note("log cut where it diverged")
        if any(self.ledger.holds_voters(entry) for entry in gone):
            self.sightings.note("voters taken back by a cut")

    # -- its role

    def _check_role(self, node: SimNode, core: RaftCore, store: Store, seen: Seen) -> None:
        match core.role:
            case Leader():
                self._check_leader(node, core, store, seen)
                return
            case Prospective() | Candidate():
                # A voter whose removal is not committed may still be needed (thesis 4.2.2).
                held = any(node.key in entry.voters for entry in core.log.voter_history)
                invariant(held, "Q13 an observer campaigns", node=node.name)
            case Resigned() if seen.leads == core.epoch and self._is_deaf(node, core, seen):
                self.sightings.note("leader resigned because nobody fetched")
        seen.leads = -1

    def _check_leader(self, node: SimNode, core: RaftCore, store: Store, seen: Seen) -> None:
        self._note_leader(node, core, node.life)
        if seen.leads != core.epoch:
            self._check_elected(node, core, store, seen)
        elif seen.led_voters.keys != core.voters.keys:
            settled = core.has_committed_epoch()
            invariant(settled, "Q13 changes voters before a commit", node=node.name)
        if seen.leads != core.epoch or seen.led_voters != core.voters:
            self._await_newcomers(node, core, seen)
            self._check_overlap(core)
        seen.leads, seen.led_voters = core.epoch, core.voters
        self._check_heard(node, core, seen)

    def _note_leader(self, node: SimNode, core: RaftCore, life: int) -> None:
        """Nor may it be the same one in another life: it has forgotten what it did not flush."""
        leader = (node.key, life)
        known = self._leaders.setdefault(core.epoch, leader)
        invariant(known == leader, "Q1 two leaders", epoch=core.epoch, one=known, two=leader)

    def _check_elected(self, node: SimNode, core: RaftCore, store: Store, seen: Seen) -> None:
        """Q13 by the votes that were really given; Q5 by the log that is really there."""
        self.sightings.note("leader elected")
        backers = [
            key for key in core.voters.keys if self._votes.get((key, core.epoch)) == node.key
        ]
        enough = len(backers) >= majority(len(core.voters))
        facts = {"node": node.name, "epoch": core.epoch, "by": backers, "of": core.voters.keys}
        invariant(enough, "Q13 elected by no majority of its voters", **facts)
        seen.mirror.reload(store)
        for entry in self.ledger.committed_before(core.epoch):
            held = entry.base_offset < seen.mirror.start or seen.mirror.holds(entry)
            invariant(held, "Q5 a leader lacks a committed record", node=node.name, entry=entry)

    def _check_overlap(self, core: RaftCore) -> None:
        """Q13: of voter sets that may both still act, any two majorities share a voter."""
        history = core.log.voter_history
        settled = [entry for entry in history if entry.offset < self.ledger.end]
        acting = [*settled[-1:], *history[len(settled) :]]
        for one in acting:
            for other in acting:
                overlap = _majorities_overlap(set(one.voters.keys), set(other.voters.keys))
                invariant(overlap, "Q13 majorities without a common voter", a=one, b=other)

    def _await_newcomers(self, node: SimNode, core: RaftCore, seen: Seen) -> None:
        """The time of a voter begins when it comes to count; that of the others goes on."""
        now_ms = node.clock.monotonic_ms()
        known = seen.heard if seen.leads == core.epoch else {}
        before = seen.led_voters if known else VoterSet()
        seen.heard = {key: known[key] if key in before else now_ms for key in core.voters.keys}

    def _check_heard(self, node: SimNode, core: RaftCore, seen: Seen) -> None:
        """Q12. Its timer is looked at before this is: there is nothing to add to the time."""
        silent_ms, most_ms = self._silent_ms(node, core, seen), FAST.check_quorum_ms
        invariant(silent_ms < most_ms, "Q12 leads on alone", node=node.name, silent_ms=silent_ms)

    def _silent_ms(self, node: SimNode, core: RaftCore, seen: Seen) -> int:
        """For how long not enough voters have fetched to make a majority."""
        others = [key for key in core.voters.keys if key != node.key]
        needed = majority(len(core.voters)) - core.is_voter
        times = sorted(seen.heard.get(key, 0) for key in others)
        return node.clock.monotonic_ms() - times[-needed] if needed else 0

    def _is_deaf(self, node: SimNode, core: RaftCore, seen: Seen) -> bool:
        return self._silent_ms(node, core, seen) >= FAST.check_quorum_ms

    # -- what it says is committed

    def _check_watermark(self, node: SimNode, core: RaftCore, seen: Seen, *, leads: bool) -> None:
        end, was = core.high_watermark, seen.high_watermark
        invariant(end >= was, "Q7 a high watermark fell", node=node.name, end=end, was=was)
        if end == was:
            return
        entries = seen.mirror.between(was, end)
        seen.high_watermark = end
        if leads:
            self._check_commit(node, core, entries)
        else:
            known = end <= self.ledger.end
            invariant(known, "Q7 above what any leader committed", node=node.name, end=end)
        self._commit(node, entries)
        known_voters = self.ledger.voters_at(end)
        same = known_voters in (None, core.log.voters_at(end))
        invariant(same, "Q13 voters that are not those of the log", node=node.name, end=end)

    def _commit(self, node: SimNode, entries: list[Entry]) -> None:
        before = self.ledger.voters_at(self.ledger.end)
        self.ledger.commit(entries, node.name)
        after = self.ledger.voters_at(self.ledger.end)
        if before and after and before != after and before.keys == after.keys:
            self.sightings.note("voter moved to another address")

    def _check_commit(self, node: SimNode, core: RaftCore, entries: list[Entry]) -> None:
        if not entries:
            return
        last = entries[-1]
        invariant(last.epoch == core.epoch, "Q8 commits an older epoch", node=node.name, last=last)
        holders = [key for key in core.voters.keys if self._is_durable(key, last)]
        enough = len(holders) >= majority(len(core.voters))
        invariant(enough, "Q7 committed without a durable majority", entry=last, by=holders)
        if entries[0].epoch < core.epoch:
            self.sightings.note("committed records of an earlier leader")

    def _is_durable(self, key: ReplicaKey, entry: Entry) -> bool:
        seen = self._seen.get(key)
        if seen is None:
            return False
        return seen.flushed >= entry.next_offset and seen.mirror.holds(entry)

    # -- its state machine

    def _check_state(self, node: SimNode, driver: Driver, seen: Seen) -> None:
        applied, machine = driver.applier.applied_offset, node.machine
        if machine.snapshots_loaded > seen.loaded:
            seen.loaded = machine.snapshots_loaded
            self.sightings.note("snapshot of a leader loaded")
            invariant(not driver.core.is_leader, "Q11 a leader loads a snapshot", node=node.name)
        if applied != seen.applied:
            seen.applied = applied
            same = machine.digest == self.ledger.digest_at(applied)
            invariant(same, "Q10 a state is not that of its offset", node=node.name, at=applied)
        role = driver.core.role
        if isinstance(role, Leader) and machine.leader == (driver.core.epoch, node.node_id):
            knows_all = applied > role.start_offset
            invariant(knows_all, "Q10 leads before it has applied all", node=node.name, at=applied)

    # -- messages

    def on_send(self, node: SimNode, request: ReplicaRequest) -> None:
        """Durable before visible: nobody vouches for what a power cut could still take."""
        if node.store is None:
            return
        durable, facts = _durable_end(node.store), {"node": node.name, "request": request}
        if isinstance(request, FetchRequest) and not node.is_broker:
            invariant(request.offset <= durable, "Q7 acks what is not flushed", **facts)
        elif isinstance(request, VoteRequest):
            invariant(request.end_offset <= durable, "Q5 campaigns with what may vanish", **facts)

    def on_request(self, node: SimNode, request: Request) -> None:
        if not isinstance(request, FetchRequest | FetchSnapshotRequest):
            return
        if node.core and request.epoch == node.core.epoch:
            self._seen_of(node).heard[request.sender] = node.clock.monotonic_ms()

    def on_reply(self, node: SimNode, request: Request, reply: Reply) -> None:
        if isinstance(request, FetchRequest | FetchSnapshotRequest) and reply.refusal is None:
            same = request.epoch == reply.epoch
            invariant(same, "Q14 a fetch of another epoch", request=request, reply=reply)
        if not isinstance(request, VoteRequest) or not isinstance(reply, VoteReply):
            return
        if reply.granted and not request.pre_vote:
            saved = node.store.election if node.store else ElectionState()
            is_saved = (saved.epoch, saved.voted_key) == (request.epoch, request.sender)
            invariant(is_saved, "Q3 a vote that is not on disk", node=node.name, saved=saved)
            self._note_vote(node, request.epoch, request.sender)
        rare = _RARE_REFUSALS.get((request.pre_vote, reply.refusal))
        if rare:
            self.sightings.note(rare)

    # -- at the end

    def check_converged(self, node: SimNode) -> None:
        """Its whole log, read anew, holds all that was ever committed; so does its state."""
        if node.store is None or node.driver is None:
            return
        seen = self._seen_of(node)
        seen.mirror.reload(node.store)
        for entry in self.ledger.committed_from(seen.mirror.start):
            invariant(seen.mirror.holds(entry), "Q6 lacks a record", node=node.name, entry=entry)
        is_same = node.machine.digest == self.ledger.digest_at(self.ledger.end)
        invariant(is_same, "V2 states differ at the end", node=node.name)

    # -- what is rare

    def _note_rare(self, node: SimNode, core: RaftCore, seen: Seen) -> None:
        role = core.role
        download = role.download if isinstance(role, Follower) else None
        was, seen.download = seen.download, download.snapshot if download else None
        if isinstance(role, Follower) and core.snapshots_rejected > seen.rejections:
            self._check_rejection(node, role.leader.key, was, seen)
            seen.rejections = core.snapshots_rejected
        elif was and was != seen.download and was.end_offset != core.log.start_offset:
            self.sightings.note("download of a snapshot given up")
        if not isinstance(role, Candidate):
            self._candidates.discard(node.key)
            return
        self._candidates.add(node.key)
        if len(self._candidates) > 1:
            self.sightings.note("two candidates at once")
        if role.lost:
            self.sightings.note("candidate lost its election")

    def _check_rejection(
        self, node: SimNode, leader: ReplicaKey, snapshot: SnapshotId | None, seen: Seen
    ) -> None:
        self.sightings.note("damaged snapshot of a leader refused")
        now_ms = node.clock.monotonic_ms()
        before, seen.rejected = seen.rejected, (leader, snapshot, now_ms)
        if before and before[:2] == (leader, snapshot):
            pause_ms = now_ms - before[2]
            has_waited = pause_ms >= FAST.sign_of_life_ms
            invariant(has_waited, "V3 loads the same damage at once", node=node.name, ms=pause_ms)


def _durable_end(store: Store) -> int:
    """What a power cut cannot take: the flushed log, or the snapshot that it begins with."""
    return max(store.log.flushed_offset, store.log.start_offset)


def _majorities_overlap(a: set[ReplicaKey], b: set[ReplicaKey]) -> bool:
    """Whether a majority of one and a majority of the other always share a voter."""
    from_shared = max(0, majority(len(a)) - len(a - b)) + max(0, majority(len(b)) - len(b - a))
    return not a or not b or from_shared > len(a & b)
