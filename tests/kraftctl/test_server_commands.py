"""A cluster by hand, as on three machines: formed, joined, replaced, with a broker beside it."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftlog.local.layout import free_port
from kraftlog.local.process import NodeProcess
from tests.kraftctl.conftest import Ran, invoke
from tests.kraftctl.test_schema_command import check
from tests.waiting import wait_until

SECONDS = 60.0


class Hand:
    """Starts nodes as a user does, each in a shell of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.nodes: dict[int, NodeProcess] = {}
        self._ports: set[int] = set()
        self.addresses = {number: self._address() for number in (101, 102, 103, 104, 1)}

    def _address(self) -> str:
        port = free_port(self._ports)
        self._ports.add(port)
        return f"127.0.0.1:{port}"

    def place(self, node_id: int) -> list[str]:
        directory = f"{self.directory}/{node_id}"
        listen = self.addresses[node_id]
        return ["--id", str(node_id), "--dir", directory, "--listen", listen]

    def start(self, node_id: int, *arguments: str) -> Ran:
        """What it says once it runs."""
        path = f"{self.directory}/{node_id}.log"
        begun = os.path.getsize(path) if os.path.exists(path) else 0
        node = NodeProcess(str(node_id), "kraftctl", [*arguments, "-o", "json"], path)
        self.nodes[node_id] = node
        node.start()

        def documents() -> list[str]:
            lines = node.log().encode()[begun:].decode().splitlines()
            return [line for line in lines if line.startswith('{"command"')]

        wait_until(lambda: bool(documents()) or not node.is_running, "it runs", SECONDS)
        assert documents(), node.log()
        return Ran(0, documents()[0], "")

    def ask(self, *arguments: str, seed: int = 101) -> Ran:
        address = self.addresses[seed]
        return invoke(*arguments, "-b", address, "--timeout", "40s", "-o", "json")

    def wait_voters(self, count: int) -> None:
        ran = self.ask("quorum", "status", "--wait", "--voters", str(count))
        assert (ran.code, ran.pick("voters")) == (0, count), ran


@pytest.fixture
def hand(tmp_path: Path) -> Iterator[Hand]:
    made = Hand(tmp_path)
    yield made
    for node in made.nodes.values():
        node.close()


@pytest.mark.slow
def test_a_cluster_by_hand(hand: Hand, tmp_path: Path) -> None:
    seed = hand.addresses[101]
    formed = hand.start(101, "quorum", "form", *hand.place(101))
    check(formed, "quorum form")
    check(hand.start(102, "quorum", "join", seed, *hand.place(102)), "quorum join")
    hand.start(103, "quorum", "join", seed, *hand.place(103), "--observer")
    hand.wait_voters(2)
    _refusals(hand)
    added = hand.ask("quorum", "add", hand.addresses[103])
    assert added.code == 0, added.out
    check(added, "quorum add")
    hand.wait_voters(3)
    _a_lost_disk(hand)
    _a_pair(hand, str(formed.pick("cluster_id")), tmp_path)
    removed = hand.ask("quorum", "remove", "103")
    assert removed.code == 0, removed.out
    check(removed, "quorum remove")


def _refusals(hand: Hand) -> None:
    second = invoke("quorum", "form", *hand.place(104), "--peers", hand.addresses[101])
    assert (second.code, "belongs to cluster" in second.err) == (6, True)
    assert f"kraftctl quorum join {hand.addresses[101]}" in second.err
    taken = ["--id", "102", "--dir", f"{hand.directory}/new", "--listen", hand.addresses[104]]
    again = invoke("quorum", "join", hand.addresses[101], *taken)
    assert (again.code, "--replace 102" in again.err) == (6, True)
    alive = invoke("quorum", "join", hand.addresses[101], "--replace", "102", *taken[2:])
    assert (alive.code, "is alive" in alive.err) == (7, True)
    both = invoke("quorum", "join", hand.addresses[101], "--replace", "102", *hand.place(103))
    assert both.code == 2
    elsewhere = ["--id", "9", "--dir", f"{hand.directory}/9", "--listen", hand.addresses[101]]
    taken_port = invoke("quorum", "form", *elsewhere)
    assert (taken_port.code, "Address already in use" in taken_port.err) == (2, True)
    assert not os.path.exists(f"{hand.directory}/9")  # so that it can be said again, better
    _a_wrong_cluster(hand, f"{hand.directory}/lost")


def _a_wrong_cluster(hand: Hand, directory: str) -> None:
    words = ["node", "run", "--role", "broker", *hand.place(1)[:2], "--dir", directory]
    words += ["--listen", hand.addresses[1], "--peers", hand.addresses[101], "--timing", "fast"]
    path = f"{directory}.log"
    node = NodeProcess("lost", "kraftctl", [*words, "--cluster-id", "AnL2Qf8T3aXkzM0vJtB1wA"], path)
    node.start()
    try:
        assert node.wait(SECONDS) == 6
    finally:
        node.close()
    assert "error: cluster id AnL2Qf8T3aXkzM0vJtB1wA, and this is " in node.log()
    assert "give it an empty --dir" in node.log()


def _a_lost_disk(hand: Hand) -> None:
    hand.nodes[103].kill()
    shutil.rmtree(f"{hand.directory}/103")
    back = ["--dir", f"{hand.directory}/103", "--listen", hand.addresses[103]]
    hand.start(103, "quorum", "join", hand.addresses[101], "--replace", "103", *back)
    hand.wait_voters(3)


def _a_pair(hand: Hand, cluster_id: str, tmp_path: Path) -> None:
    words = ["node", "format", *hand.place(104), "--cluster-id", cluster_id, "-o", "json"]
    check(invoke(*words), "node format")
    assert invoke(*words).code == 6
    file = tmp_path / "both.toml"
    file.write_text(f"""
timing.profile = "fast"
quorum.peers = "{hand.addresses[101]}"
[role.controller]
listeners = "{hand.addresses[104]}"
log.dirs = "{hand.directory}/104"
[role.broker]
node.id = 1
listeners = "{hand.addresses[1]}"
log.dirs = "{hand.directory}/1"
cluster.id = "{cluster_id}"
""")
    pair = hand.start(104, "node", "run", "--role", "both", "--config", str(file))
    check(pair, "node run")

    def states() -> object:
        rows = hand.ask("node", "ls", seed=1).data
        return [each["state"] for each in rows] if isinstance(rows, list) else []

    wait_until(lambda: states() == ["active"], "the broker", SECONDS)
    assert hand.ask("node", "info", "1", seed=1).pick("role") == "broker"
    hand.nodes[104].signal(signal.SIGTERM)
    assert hand.nodes[104].wait(SECONDS) == 0


def test_a_broker_is_formatted(tmp_path: Path) -> None:
    words = ["node", "format", "--role", "broker", "--id", "1", "--dir", str(tmp_path / "b1")]
    cluster = ["--cluster-id", "4nL2Qf8T3aXkzM0vJtB1wA", "--peers", "127.0.0.1:1"]
    ran = invoke(*words, *cluster, "-o", "json")
    assert ran.code == 0, ran.out
    check(ran, "node format")
    other = invoke(*words, "--cluster-id", "AnL2Qf8T3aXkzM0vJtB1wA", *cluster[2:])
    assert other.code == 6
    assert "4nL2Qf8T3aXkzM0vJtB1wA" in other.err
    assert str(tmp_path / "b1" / "meta.properties") in other.err


def test_ids_that_do_not_fit_are_shown_with_both_files(tmp_path: Path) -> None:
    place = ["--dir", str(tmp_path / "c1")]
    known = ["--id", "101", "--cluster-id", "4nL2Qf8T3aXkzM0vJtB1wA"]
    assert invoke("node", "format", *place, *known).code == 0
    file = tmp_path / "c1.toml"
    file.write_text("node.id = 102\n")
    ran = invoke("node", "run", "--role", "controller", *place, "--config", str(file))
    assert ran.code == 2
    assert f"node.id = 102, but {place[1]} belongs to node 101" in ran.err
    assert str(file) in ran.err


@pytest.mark.parametrize(
    "line",
    [
        "quorum form",
        "quorum form --id 0 --dir D --listen 127.0.0.1:9101",
        "quorum form --id 1 --dir D --listen nonsense",
        "quorum join nonsense --id 1 --dir D --listen 127.0.0.1:9101",
        "node run",
        "node run --role controller",
        "node run --role janitor",
        "node run --role both --config F --id 1",
        "node run --role both",
        "node run --role broker --config nowhere.toml",
        "node format --id 1 --dir D",
        "node format --id 1 --dir D --cluster-id x",
        "node run --role controller --dir D -X log.segement.bytes=1",
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = invoke(*line.split())
    assert ran.code == 2, (line, ran.err)
    assert not (tmp_path / "D").exists()


def test_a_directory_of_nobody_and_a_seed_that_is_not_there(tmp_path: Path) -> None:
    run = invoke("node", "run", "--role", "controller", "--dir", str(tmp_path / "c"))
    assert (run.code, "is not formatted" in run.err) == (5, True)
    place = ["--id", "1", "--dir", str(tmp_path / "c"), "--listen", "127.0.0.1:9"]
    join = invoke("quorum", "join", "127.0.0.1:1", *place)
    assert (join.code, "127.0.0.1:1" in join.err) == (4, True)
    document = invoke("quorum", "join", "127.0.0.1:1", *place, "-o", "json").out
    assert json.loads(document)["data"] is None
