"""Stories of a quorum, message by message: tests/quorum/transcripts/*.txt.

quorum VOTERS [OBSERVERS [FETCH_BYTES]]
                             a new world
led VOTERS [OBSERVERS [FETCH_BYTES]]
                             a new world in which node 1 leads and all have what it began with
slow-disks                   from now on a flush ends only with `flush N`
wake N                       the clock moves on until node N wants to be woken
time-out N                   the clock moves on until the election or fetch time of N is over
pass MS                      time passes, and messages arrive
deliver [N [M]]              what is on the wire now [for node N [from M]] arrives
settle                       all messages arrive, and those that follow
lose [N [M]]                 what is on the wire now [for node N [from M]] is lost
reset N                      node N hears that none of its open requests will be answered
flush N | crash N | restart N | wipe N | cut N | heal
join N                       a node with an empty directory
propose N VALUE | read N | resign N | add N [DISK] | remove N [DISK] | snapshot N | drop-log N
ask N KIND SENDER FIELD=VALUE...   a request that a test makes up
show                         all nodes
quietly COMMAND...           the same without messages and flushes
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kraftlog.errors import KraftError
from kraftlog.types import Uuid
from quorum.core.effects import Effect, Flush
from quorum.core.messages import RaftRequest, Reply, Request
from tests.quorum.core import requests, telling
from tests.quorum.core.cluster import CLUSTER_ID, Cluster, key_of, voter_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.world import Node, Packet
from tests.transcript import replay

STORIES = sorted((Path(__file__).parent.parent / "transcripts").glob("*.txt"))


class Story:
    def __init__(self) -> None:
        self.cluster = Cluster(0)
        self.lines: list[str] = []
        self.quiet = False
        self.roles: dict[int, tuple[str, int, int]] = {}

    def run(self, command: str) -> list[str]:
        self.lines = []
        verb, *words = command.split()
        self.quiet = verb == "quietly"
        if self.quiet:
            verb, *words = words
        try:
            getattr(self, "pass_" if verb == "pass" else verb.replace("-", "_"))(*words)
        except KraftError as error:
            self.lines.append(f"{type(error).__name__}: {error}")
        return self.lines

    # -- telling

    def _note(self, node: Node, effect: Effect) -> None:
        self._note_role(node)
        told = telling.effect(node, effect)
        if told and not (self.quiet and isinstance(effect, Flush)):
            self.lines.append(f"  {told}")
        sent = telling.message(node, effect)
        if sent and not self.quiet:
            self.lines.append(f"  {sent}")

    def _note_role(self, node: Node) -> None:
        role = (type(node.role).__name__, node.core.epoch, node.life)
        if self.roles.get(node.node_id) != role:
            self.roles[node.node_id] = role
            self.lines.append(telling.state(node))

    # -- the world

    def quorum(self, voters: str, observers: str = "0", fetch_bytes_max: str = "1000") -> None:
        self.cluster = Cluster(0, fetch_bytes_max=int(fetch_bytes_max))
        self.cluster.trace = self._note
        self.cluster.form(int(voters), int(observers))

    def led(self, voters: str, observers: str = "0", fetch_bytes_max: str = "1000") -> None:
        self.quorum(voters, observers, fetch_bytes_max)
        self.cluster.elect(1)
        self.cluster.run(100)
        self.lines = []
        self.show()

    def slow_disks(self) -> None:
        self.cluster.auto_flush = False

    def show(self) -> None:
        self.lines += [telling.state(node) for node in self.cluster.alive]

    def wake(self, node: str) -> None:
        cluster = self.cluster
        cluster.now_ms = max(cluster.now_ms, cluster.nodes[int(node)].core.wake_at_ms)
        cluster.tick(int(node))

    def time_out(self, node: str) -> None:
        """Its time is over: that of an election, or that without an answer of its leader."""
        cluster = self.cluster
        cluster.now_ms = max(cluster.now_ms, cluster.deadline_ms(int(node)))
        cluster.tick(int(node))

    def pass_(self, ms: str) -> None:
        self.cluster.run(int(ms))

    def settle(self) -> None:
        self.cluster.settle()

    def _on_wire(self, target: str, source: str) -> Iterator[Packet]:
        for packet in list(self.cluster.wire):
            if target in ("", str(packet.target)) and source in ("", str(packet.source)):
                yield packet

    def deliver(self, target: str = "", source: str = "") -> None:
        for packet in self._on_wire(target, source):
            self.cluster.deliver(self.cluster.wire.index(packet))

    def lose(self, target: str = "", source: str = "") -> None:
        for packet in self._on_wire(target, source):
            self.cluster.wire.remove(packet)

    def reset(self, node: str) -> None:
        for request_id in list(self.cluster.nodes[int(node)].open_requests):
            self.cluster.fail(int(node), request_id)

    def flush(self, node: str) -> None:
        self.cluster.finish_flush(int(node))

    def crash(self, node: str) -> None:
        self.cluster.crash(int(node))
        self.lines.append(f"n{node} is dead")

    def restart(self, node: str) -> None:
        self.cluster.restart(int(node))

    def wipe(self, node: str) -> None:
        self.cluster.wipe(int(node))

    def join(self, node: str) -> None:
        self.cluster.add_node(int(node), Disk())

    def cut(self, node: str) -> None:
        self.cluster.cut(int(node))

    def heal(self) -> None:
        self.cluster.heal()

    # -- clients and operators

    def propose(self, node: str, *values: str) -> None:
        self.cluster.propose(*values, at=int(node))

    def read(self, node: str) -> None:
        self.cluster.read(int(node))

    def resign(self, node: str) -> None:
        self.cluster.resign(int(node))

    def add(self, node: str, disk: str = "1") -> None:
        self.cluster.add_voter(voter_of(int(node), int(disk)))

    def remove(self, node: str, disk: str = "1") -> None:
        self.cluster.remove_voter(key_of(int(node), int(disk)))

    def snapshot(self, node: str) -> None:
        self.lines.append(f"  n{node} has written {self.cluster.snapshot(int(node))}")

    def drop_log(self, node: str) -> None:
        self.cluster.drop_log(int(node), max(self.cluster.nodes[int(node)].disk.snapshots))

    def ask(self, node: str, kind: str, sender: str, *fields: str) -> None:
        made = _made_up(kind, int(sender), self.cluster.nodes[int(node)].core.epoch)
        for field in fields:
            key, value = field.split("=")
            made = _changed(made, key, value)
        assert isinstance(made, Request)
        reply: Reply = self.cluster.answer(int(node), made)
        if self.quiet:
            self.lines.append(f"  => {telling.reply(reply)}")


def _made_up(kind: str, sender: int, epoch: int) -> RaftRequest:
    match kind:
        case "vote":
            return requests.vote(sender, epoch=epoch)
        case "begin":
            return requests.begin(sender, epoch=epoch)
        case "end":
            return requests.end(sender, epoch=epoch)
        case _:
            return requests.fetch(sender, epoch=epoch)


def _changed(made: RaftRequest, key: str, value: str) -> RaftRequest:
    match key:
        case "cluster":
            return replace(made, cluster_id=CLUSTER_ID if value == "ours" else Uuid(bytes(16)))
        case "to" | "from":
            node, _, disk = value.partition("/")
            who = key_of(int(node), int(disk or 1))
            return replace(made, recipient=who) if key == "to" else replace(made, sender=who)
        case "pre_vote":
            return replace(made, **{key: value == "yes"})  # type: ignore[arg-type]
        case _:
            return replace(made, **{key: int(value)})  # type: ignore[arg-type]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    replay(path, Story().run, rewrite=bool(request.config.getoption("--rewrite")))


def test_there_are_stories() -> None:
    assert len(STORIES) >= 15
