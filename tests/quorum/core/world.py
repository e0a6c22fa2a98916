"""Real cores, and what they want done: a list is the wire, a number is the clock.

Nothing happens by itself here: tests/quorum/core/cluster.py has the verbs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

from kraftlog.types import Uuid
from quorum.core.config import KAFKA, RaftConfig, Timing
from quorum.core.effects import (
    Append,
    AppendSnapshotChunk,
    CheckSnapshot,
    Committed,
    DropLogBelow,
    DropSnapshot,
    Effect,
    FinishSnapshot,
    Flush,
    LeadershipGained,
    ReadFailed,
    ReadReady,
    SaveElection,
    Send,
    SendRecords,
    SendReply,
    SendSnapshotChunk,
    StartSnapshot,
    TruncateLog,
)
from quorum.core.messages import (
    Refusal,
    ReplicaKey,
    Reply,
    Request,
    SnapshotId,
    Voter,
    VoteReply,
    VoteRequest,
    VoterSet,
)
from quorum.core.raft import RaftCore
from quorum.core.state import Leader, Role
from tests.quorum.core.disk import Disk, Snapshot
from tests.quorum.core.rules import Rules

CLUSTER_ID = Uuid(bytes(15) + b"c")
CHUNK_BYTES = 20

Draw = Callable[[int, int], int]
"""Node id and n to a number in [0, n)."""


def key_of(node_id: int, disk: int = 1) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes(14) + bytes([disk, node_id])))


def voter_of(node_id: int, disk: int = 1) -> Voter:
    return Voter(key_of(node_id, disk), f"n{node_id}")


def voters_of(*node_ids: int) -> VoterSet:
    return VoterSet.of(map(voter_of, node_ids))


def lowest_first(node_id: int, n: int) -> int:
    """Dice that let node 1 campaign first, then 2, and so on."""
    return min(n - 1, (node_id - 1) * n // 8)


@dataclass(frozen=True, slots=True)
class Packet:
    """A request on its way, or the answer to one. Operators are node 0."""

    source: int
    target: int
    life: int
    """Of the asker: what was asked in another life is of no interest."""
    request_id: int
    body: Request | Reply
    is_reply: bool

    @property
    def asker(self) -> int:
        return self.target if self.is_reply else self.source


@dataclass(slots=True)
class Node:
    config: RaftConfig
    disk: Disk
    core: RaftCore
    life: int = 1
    alive: bool = True
    incoming: dict[int, Packet] = field(default_factory=dict)
    open_requests: dict[int, int] = field(default_factory=dict)
    """Requests without an answer, and when to give them up."""
    flush: Flush | None = None
    """The flush that runs; a later one replaces it, as in a group commit."""
    is_checking: bool = False
    """Its download is being checked."""
    news: list[Effect] = field(default_factory=list)

    @property
    def node_id(self) -> int:
        return self.config.key.node_id

    @property
    def role(self) -> Role:
        return self.core.role

    @property
    def records(self) -> list[bytes]:
        """The data of all committed batches in the log."""
        end = self.core.high_watermark
        batches = (each for each in self.disk.batches if each.next_offset <= end)
        return [bytes(batch.data) for batch in batches if batch.control is None]


class World:
    def __init__(
        self,
        voters: int = 3,
        observers: int = 0,
        *,
        timing: Timing = KAFKA,
        draw: Draw = lowest_first,
        auto_flush: bool = True,
        auto_check: bool = True,
        fetch_bytes_max: int = 1 << 20,
    ) -> None:
        self.timing = timing
        self.auto_flush = auto_flush
        self.auto_check = auto_check
        self.now_ms = 0
        self.wire: list[Packet] = []
        self.cuts: set[tuple[int, int]] = set()
        self.rules = Rules()
        self.answers: dict[int, Reply] = {}
        """What operators were told, by the number of their request."""
        self.reads: dict[int, int | Refusal] = {}
        self.plays_others = False
        """The test speaks for the other voters, so that nobody can look at their disks."""
        self.trace: Callable[[Node, Effect], None] | None = None
        self.nodes: dict[int, Node] = {}
        self._draw = draw
        self._fetch_bytes_max = fetch_bytes_max
        self._tokens = count(1)
        self._snapshots: dict[SnapshotId, Snapshot] = {}
        self._peers: tuple[str, ...] = ()
        self.form(voters, observers)

    # -- nodes

    def form(self, voters: int, observers: int) -> None:
        """Voters 1, 2, ... with a bootstrap checkpoint, and observers that know nobody."""
        self._peers = tuple(f"n{number}" for number in range(1, voters + observers + 1))
        formed = voters_of(*range(1, voters + 1))
        for number in range(1, voters + observers + 1):
            self.add_node(number, Disk(bootstrap=formed if number <= voters else None))

    def add_node(
        self,
        node_id: int,
        disk: Disk,
        *,
        disk_number: int = 1,
        peers: tuple[str, ...] | None = None,
        endpoint: str | None = None,
        flush_always: bool = True,
        life: int = 1,
    ) -> Node:
        config = RaftConfig(
            cluster_id=CLUSTER_ID,
            key=key_of(node_id, disk_number),
            endpoint=endpoint or f"n{node_id}",
            timing=self.timing,
            peers=self._peers if peers is None else peers,
            flush_always=flush_always,
            fetch_bytes_max=self._fetch_bytes_max,
            snapshot_chunk_bytes=CHUNK_BYTES,
        )
        node = Node(config, disk, self._new_core(config, disk), life)
        self.nodes[node_id] = node
        self._perform(node)
        return node

    def _new_core(self, config: RaftConfig, disk: Disk) -> RaftCore:
        node_id = config.key.node_id
        return RaftCore(
            config,
            disk.open(),
            disk.election,
            draw=lambda n: self._draw(node_id, n),
            now_ms=self.now_ms,
        )

    def crash(self, node_id: int) -> None:
        node = self.nodes[node_id]
        node.alive, node.flush, node.is_checking = False, None, False
        node.disk.crash()
        node.incoming.clear()
        node.open_requests.clear()

    def restart(self, node_id: int, *, endpoint: str | None = None) -> Node:
        node = self.nodes[node_id]
        if node.alive:
            self.crash(node_id)
        node.config = replace(node.config, endpoint=endpoint or node.config.endpoint)
        node.alive, node.life = True, node.life + 1
        node.core = self._new_core(node.config, node.disk)
        self._perform(node)
        return node

    def wipe(self, node_id: int, *, disk_number: int = 2) -> Node:
        """The disk is lost; the node starts anew, with another directory id."""
        life = self.nodes[node_id].life + 1
        return self.add_node(node_id, Disk(), disk_number=disk_number, life=life)

    @property
    def alive(self) -> list[Node]:
        return [node for _, node in sorted(self.nodes.items()) if node.alive]

    @property
    def leaders(self) -> list[Node]:
        return [node for node in self.alive if isinstance(node.role, Leader)]

    @property
    def leader(self) -> Node:
        """The leader of the highest epoch that has one."""
        return max(self.leaders, key=lambda node: node.core.epoch)

    def act(self, node_id: int, work: Callable[[RaftCore], object]) -> None:
        """Let one core do something, and carry out what it wants done."""
        node = self.nodes[node_id]
        assert node.alive
        work(node.core)
        self._perform(node)

    def finish_flush(self, node_id: int) -> None:
        node = self.nodes[node_id]
        flush, node.flush = node.flush, None
        if flush is None:
            return
        if flush.log_version == node.core.log.version:
            node.disk.flushed_offset = max(node.disk.flushed_offset, flush.end_offset)
        end, version = flush.end_offset, flush.log_version
        self.act(node_id, lambda core: core.flushed(end, version, self.now_ms))

    # -- what the cores want done

    def _perform(self, node: Node) -> None:
        while True:
            while effects := node.core.take_effects():
                for effect in effects:
                    self._perform_traced(node, effect)
            self.rules.on_epoch(node.config.key, node.core.epoch, node.disk)
            if node.flush is None or not self.auto_flush:
                break
            self.finish_flush(node.node_id)
        # A core that wants to be woken at once, again and again, burns a processor.
        assert node.core.wake_at_ms > self.now_ms, f"no rest in {node.role}"

    def _perform_traced(self, node: Node, effect: Effect) -> None:
        if self.trace:
            self.trace(node, effect)
        self._perform_one(node, effect)

    def _perform_one(self, node: Node, effect: Effect) -> None:
        disk = node.disk
        match effect:
            case SaveElection(election=election):
                disk.election = election
            case Append(batches=batches):
                for batch in batches:
                    self.rules.on_append(batch, disk.append(batch))
            case Flush():
                node.flush = effect
            case TruncateLog(end_offset=end):
                self.rules.on_truncate(disk, end, leads=node.core.is_leader)
                disk.truncate(end)
            case DropLogBelow(snapshot=snapshot):
                disk.drop_below(snapshot)
            case StartSnapshot() | AppendSnapshotChunk() | CheckSnapshot():
                self._perform_download(node, effect)
            case FinishSnapshot() | DropSnapshot():
                self._end_download(node, effect)
            case Send() | SendReply() | SendRecords() | SendSnapshotChunk():
                self._perform_message(node, effect)
            case _:
                self._perform_news(node, effect)

    def _perform_download(
        self,
        node: Node,
        effect: StartSnapshot | AppendSnapshotChunk | CheckSnapshot,
    ) -> None:
        disk = node.disk
        match effect:
            case StartSnapshot(snapshot=snapshot):
                disk.download = (snapshot, bytearray())
            case AppendSnapshotChunk(snapshot, position, data):
                assert disk.download is not None
                assert (snapshot, position) == (disk.download[0], len(disk.download[1]))
                disk.download[1].extend(data)
            case CheckSnapshot():
                node.is_checking = True
                if self.auto_check:
                    self._finish_check(node)

    def finish_check(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.is_checking:
            self._finish_check(node)
            self._perform(node)

    def _finish_check(self, node: Node) -> None:
        node.is_checking = False
        assert node.disk.download is not None
        snapshot, data = node.disk.download
        known = self._snapshots.get(snapshot)
        is_sound = known is not None and bytes(data) == known.data
        node.core.snapshot_checked(snapshot, self.now_ms, is_sound=is_sound)

    def _end_download(self, node: Node, effect: FinishSnapshot | DropSnapshot) -> None:
        disk = node.disk
        disk.download, node.is_checking = None, False
        match effect:
            case DropSnapshot():
                pass
            case FinishSnapshot(snapshot=snapshot):
                assert not node.core.is_leader, "Q11 a leader loads a snapshot"
                known = self._snapshots[snapshot]
                disk.restart_at(snapshot, known)
                node.core.snapshot_loaded(snapshot, known.voters, self.now_ms)
                self.rules.on_commit(disk, snapshot.end_offset)

    def _perform_message(
        self, node: Node, effect: Send | SendReply | SendRecords | SendSnapshotChunk
    ) -> None:
        match effect:
            case Send(request_id, endpoint, _, request, timeout_ms):
                if effect.after_flush is not None:
                    assert effect.after_flush <= node.disk.flushed_offset, "promise of no disk"
                node.open_requests[request_id] = self.now_ms + timeout_ms
                target = self._node_at(endpoint)
                packet = Packet(
                    node.node_id, target, node.life, request_id, request, is_reply=False
                )
                self.wire.append(packet)
            case SendReply(token=token, reply=reply):
                self._reply(node, token, reply)
            case SendRecords(token, fetch_reply, offset, end, max_bytes):
                batches = node.disk.read(offset, end_offset=end, max_bytes=max_bytes)
                self._reply(node, token, replace(fetch_reply, batches=batches))
            case SendSnapshotChunk(token, chunk, max_bytes):
                whole = node.disk.snapshots[chunk.snapshot].data
                data = whole[chunk.position : chunk.position + max_bytes]
                refusal = None if data else Refusal.POSITION_OUT_OF_RANGE
                self._reply(
                    node, token, replace(chunk, size=len(whole), data=data, refusal=refusal)
                )

    def _node_at(self, endpoint: str) -> int:
        nodes = self.nodes.values()
        return next((each.node_id for each in nodes if each.config.endpoint == endpoint), -1)

    def _reply(self, node: Node, token: int, reply: Reply) -> None:
        packet = node.incoming.pop(token)
        match packet.body, reply:
            case VoteRequest(pre_vote=False) as asked, VoteReply(granted=True):
                self.rules.on_vote(node.config.key, asked.epoch, asked.sender, node.disk)
            case _:
                pass
        if packet.source == 0:
            self.answers[packet.request_id] = reply
            return
        back = Packet(
            node.node_id, packet.source, packet.life, packet.request_id, reply, is_reply=True
        )
        self.wire.append(back)

    def _perform_news(self, node: Node, effect: Effect) -> None:
        node.news.append(effect)
        key = node.config.key
        match effect:
            case LeadershipGained():
                role = node.role
                assert isinstance(role, Leader)
                self.rules.on_leader(key, effect, node.disk)
                self.rules.on_election(node.core.voters, role.granted_by)
            case Committed(high_watermark=end):
                if node.core.is_leader and not self.plays_others:
                    holders = [self._disk_of(each) for each in node.core.voters.keys]
                    self.rules.on_leader_commit(node.core.epoch, end, node.disk, holders)
                self.rules.on_commit(node.disk, end)
            case ReadReady(tokens=tokens, end_offset=end):
                self.rules.on_read_ready(key, effect)
                self.reads.update(dict.fromkeys(tokens, end))
            case ReadFailed(tokens=tokens, refusal=refusal):
                self.reads.update(dict.fromkeys(tokens, refusal))
            case _:
                pass

    def _disk_of(self, key: ReplicaKey) -> Disk | None:
        node = self.nodes.get(key.node_id)
        return node.disk if node and node.config.key == key else None
