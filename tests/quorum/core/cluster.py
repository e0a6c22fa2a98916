"""Small worlds of real cores.

Nothing happens by itself: a test delivers, loses or repeats messages, ends flushes, moves the clock
and takes the power away. `settle`, `run` and `until` do the usual in the usual order. The rules of
tests/quorum/core/rules.py are checked all the while.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from quorum.core.messages import (
    AddVoterRequest,
    Proposal,
    RemoveVoterRequest,
    ReplicaKey,
    Reply,
    Request,
    SnapshotId,
    Voter,
)
from quorum.core.state import (
    NEVER_MS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from tests.quorum.core.disk import Snapshot
from tests.quorum.core.world import (
    CLUSTER_ID,
    Node,
    Packet,
    World,
    key_of,
    lowest_first,
    voter_of,
    voters_of,
)

__all__ = [
    "CLUSTER_ID",
    "Cluster",
    "Node",
    "Packet",
    "key_of",
    "kinds",
    "lowest_first",
    "voter_of",
    "voters_of",
]

R = TypeVar("R")

DELIVERIES_MAX = 5_000
EVENTS_MAX = 20_000


class Cluster(World):
    """A world and what one can do to it."""

    def role(self, node_id: int, kind: type[R]) -> R:
        """The role of a node, which is to be of this kind."""
        role = self.nodes[node_id].role
        assert isinstance(role, kind), role
        return role

    def deadline_ms(self, node_id: int) -> int:
        """When the time of its role is over."""
        match self.nodes[node_id].role:
            case Unattached(election_deadline_ms=at) | Follower(fetch_deadline_ms=at):
                return at
            case Leader(check_quorum_deadline_ms=at):
                return at
            case Prospective(deadline_ms=at) | Candidate(deadline_ms=at) | Resigned(deadline_ms=at):
                return at

    # -- inputs

    def tick(self, node_id: int) -> None:
        self.act(node_id, lambda core: core.tick(self.now_ms))

    def propose(self, *values: str, at: int | None = None) -> int:
        """Append each value as a batch of its own; returns the first offset."""
        node = self.leader if at is None else self.nodes[at]
        proposals = [Proposal(value.encode(), 1) for value in values]
        first = node.core.propose(proposals, epoch=node.core.epoch, now_ms=self.now_ms)
        self._perform(node)
        return first

    def read(self, at: int) -> int:
        token = next(self._tokens)
        self.rules.on_read(self.nodes[at].config.key, token)
        self.act(at, lambda core: core.read(token, self.now_ms))
        return token

    def resign(self, node_id: int) -> None:
        self.act(node_id, lambda core: core.resign(self.now_ms))

    def ask(self, node_id: int, request: Request) -> int:
        """An operator, or a test, asks; the answer comes into `answers`."""
        number = next(self._tokens)
        self._receive(Packet(0, node_id, 0, number, request, is_reply=False))
        return number

    def answer(self, node_id: int, request: Request) -> Reply:
        """Ask, and expect the answer at once."""
        return self.answers[self.ask(node_id, request)]

    def add_voter(self, voter: Voter, at: int | None = None) -> int:
        request = AddVoterRequest(cluster_id=CLUSTER_ID, voter=voter)
        return self.ask(at or self.leader.node_id, request)

    def remove_voter(self, key: ReplicaKey, at: int | None = None) -> int:
        request = RemoveVoterRequest(cluster_id=CLUSTER_ID, key=key)
        return self.ask(at or self.leader.node_id, request)

    def snapshot(self, node_id: int) -> SnapshotId:
        """The node writes a snapshot of all that it knows to be committed."""
        node = self.nodes[node_id]
        log, end = node.core.log, node.core.high_watermark
        epoch = next(each.epoch for each in node.disk.batches if each.next_offset == end)
        snapshot_id = SnapshotId(end, epoch)
        digest = node.disk.digest_at(end)
        assert digest is not None
        data = f"all below {end}: ".encode() * 3
        snapshot = Snapshot(log.voters_at(end), digest, data)
        self._snapshots[snapshot_id] = snapshot
        node.disk.snapshots[snapshot_id] = snapshot
        self.act(node_id, lambda core: core.snapshot_created(snapshot_id, self.now_ms))
        return snapshot_id

    def drop_log(self, node_id: int, snapshot: SnapshotId) -> None:
        self.act(node_id, lambda core: core.drop_log_below(snapshot, self.now_ms))

    # -- the wire

    def cut(self, *node_ids: int) -> None:
        """Nothing goes between these and the others, in either direction."""
        others = set(self.nodes) - set(node_ids)
        self.cuts |= {(a, b) for a in node_ids for b in others}
        self.cuts |= {(b, a) for a in node_ids for b in others}

    def cut_way(self, source: int, target: int) -> None:
        self.cuts.add((source, target))

    def heal(self) -> None:
        self.cuts.clear()

    def deliver(self, index: int = 0) -> None:
        """A cut swallows; a dead node refuses the connection."""
        packet = self.wire.pop(index)
        target = self.nodes.get(packet.target)
        if target is None or (packet.source, packet.target) in self.cuts:
            return
        if target.alive:
            self._receive(packet)
        elif not packet.is_reply and self.nodes[packet.source].life == packet.life:
            self.fail(packet.source, packet.request_id)

    def deliver_to(self, *node_ids: int) -> None:
        """What is on the wire for these nodes now; what they send in return stays there."""
        due = [packet for packet in self.wire if packet.target in node_ids]
        for packet in due:
            self.deliver(self.wire.index(packet))

    def lose(self, index: int = 0) -> Packet:
        return self.wire.pop(index)

    def lose_all(self) -> None:
        self.wire.clear()

    def reply(self, node_id: int, request_id: int, reply: Reply) -> None:
        """Answer a request of this node in the place of whoever was asked."""
        del self.nodes[node_id].open_requests[request_id]
        self.act(node_id, lambda core: core.handle_reply(request_id, reply, self.now_ms))

    def fail(self, node_id: int, request_id: int) -> None:
        """There will be no answer."""
        node = self.nodes[node_id]
        if node.alive and node.open_requests.pop(request_id, None) is not None:
            self.act(node_id, lambda core: core.handle_reply(request_id, None, self.now_ms))

    def _receive(self, packet: Packet) -> None:
        node = self.nodes.get(packet.target)
        if node is None or not node.alive:
            return
        body = packet.body
        if packet.is_reply:
            known = node.life == packet.life and packet.request_id in node.open_requests
            if known:
                del node.open_requests[packet.request_id]
                self._handle_reply(node, packet.request_id, body)
            return
        token = next(self._tokens)
        node.incoming[token] = packet
        self._handle_request(node, token, body)

    def _handle_request(self, node: Node, token: int, body: Request | Reply) -> None:
        assert isinstance(body, Request)
        self.act(node.node_id, lambda core: core.handle_request(token, body, self.now_ms))

    def _handle_reply(self, node: Node, request_id: int, body: Request | Reply) -> None:
        assert isinstance(body, Reply)
        self.act(node.node_id, lambda core: core.handle_reply(request_id, body, self.now_ms))

    def break_connections(self, node_id: int) -> None:
        """Whoever waits for an answer of this node hears that there will be none."""
        endpoint = self.nodes[node_id].config.endpoint
        for node in self.alive:
            flights = list(node.core._replica.inflight.items())
            for request_id, flight in flights:
                if flight.endpoint == endpoint:
                    self.fail(node.node_id, request_id)

    # -- time

    def settle(self) -> None:
        """Deliver, in order, until nothing is on the wire."""
        for _ in range(DELIVERIES_MAX):
            if not self.wire:
                return
            self.deliver()
        raise AssertionError(f"no rest: {self.wire[:5]}")

    def run(self, ms: int) -> None:
        """Let time pass; messages take none."""
        self.until(lambda: False, limit_ms=ms, must=False)

    def until(
        self, holds: Callable[[], bool], *, limit_ms: int = 60_000, must: bool = True
    ) -> None:
        end_ms = self.now_ms + limit_ms
        for _ in range(EVENTS_MAX):
            self.settle()
            if holds():
                return
            at_ms = max(self.now_ms, self._next_ms())
            if at_ms > end_ms:
                break
            self.now_ms = at_ms
            self._act_on_time()
        self.now_ms = end_ms
        assert not must, "it did not come to that"

    def _next_ms(self) -> int:
        wakes = [node.core.wake_at_ms for node in self.alive]
        deadlines = [at for node in self.alive for at in node.open_requests.values()]
        return min([*wakes, *deadlines], default=NEVER_MS)

    def _act_on_time(self) -> None:
        for node in self.alive:
            for request_id, at in list(node.open_requests.items()):
                if at <= self.now_ms:
                    self.fail(node.node_id, request_id)
            if node.core.wake_at_ms <= self.now_ms:
                self.tick(node.node_id)

    def elect(self, node_id: int = 1) -> Node:
        """Time passes until this node leads and its epoch is committed everywhere."""
        node = self.nodes[node_id]
        self.until(node.core.has_committed_epoch)
        self.settle()
        return node


def kinds(packets: Sequence[Packet]) -> list[str]:
    """`1>2 VoteRequest` for each."""
    return [f"{p.source}>{p.target} {type(p.body).__name__}" for p in packets]
