"""The commands as a user runs them: servers in processes of their own, and what is printed."""

import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorum.cli import main
from quorum.local import ControllerProcess, free_port

# Not the fast profile: on a machine with a lot to do its leaders look dead.
JOURNAL = ("--state", "journal")

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


class Hand:
    """Starts nodes as the documents say, one after the other, and asks them."""

    def __init__(self, directory: Path, capsys: Capture) -> None:
        self.directory = directory
        self.addresses = {number: f"127.0.0.1:{free_port()}" for number in (101, 102, 103)}
        self.processes: dict[int, ControllerProcess] = {}
        self._capsys = capsys

    def arguments(self, node_id: int) -> list[str]:
        place = f"{self.directory}/c{node_id}"
        listen = self.addresses[node_id]
        return ["--node-id", str(node_id), "--directory", place, "--listen", listen, *JOURNAL]

    def start(self, node_id: int, *words: str) -> ControllerProcess:
        log = f"{self.directory}/{node_id}.log"
        process = ControllerProcess([*words, *self.arguments(node_id)], log)
        process.start()
        self.processes[node_id] = process
        return process.wait_ready()

    def command(self, *words: str) -> tuple[int, Mapping[str, object]]:
        """Exit code and document of a command that ends by itself."""
        self._capsys.readouterr()
        code = main([*words, "-o", "json"])
        document = json.loads(self._capsys.readouterr().out)
        assert isinstance(document, dict)
        return code, document

    def refusal(self, *words: str) -> tuple[int, str]:
        code, document = self.command(*words)
        error = document["error"]
        assert isinstance(error, dict)
        return code, str(error["message"])

    def ask(self, *words: str) -> Mapping[str, object]:
        code, document = self.command(*words, *self.client_words())
        assert code == 0, document
        data = document["data"]
        assert isinstance(data, dict)
        return data

    def client_words(self) -> list[str]:
        known = ",".join(self.addresses[number] for number in self.processes)
        return ["-b", known, "--timeout", "15s"]

    def wait_voters(self, *node_ids: int) -> None:
        deadline = time.monotonic() + 60
        while (found := self.voters()) != list(node_ids):
            assert time.monotonic() < deadline, f"the voters are {found}"

    def voters(self) -> list[int]:
        _, document = self.command("status", *self.client_words())
        data = document["data"]
        assert isinstance(data, dict)
        members = data["members"]
        return sorted(member["node_id"] for member in members if member["voter"])


@contextmanager
def by_hand(directory: Path, capsys: Capture) -> Iterator[Hand]:
    hand = Hand(directory, capsys)
    try:
        yield hand
    finally:
        for process in hand.processes.values():
            process.close()


def test_form_join_add_remove_and_propose(tmp_path: Path, capsys: Capture) -> None:
    with by_hand(tmp_path, capsys) as hand:
        first = hand.start(101, "form")
        seed = hand.addresses[101]
        hand.start(102, "join", seed)
        hand.wait_voters(101, 102)
        hand.start(103, "join", seed, "--observer")
        added = str(hand.ask("add", hand.addresses[103])["added"])
        assert added.startswith("103:")
        hand.wait_voters(101, 102, 103)
        offset = hand.ask("propose", "a", "b")["base_offset"]
        assert isinstance(offset, int)
        assert hand.ask("propose", "c")["base_offset"] == offset + 2
        again = hand.refusal("add", hand.addresses[103], *hand.client_words())
        assert again == (6, "duplicate voter")
        assert hand.ask("remove", "103")["removed"] == added
        hand.wait_voters(101, 102)
        assert hand.refusal("remove", "103", *hand.client_words()) == (5, "103 is no voter")
        assert main(["status", "-b", seed]) == 0
        shown = capsys.readouterr().out
        assert str(first.ready["cluster_id"]) in shown
        assert "BELIEVES" in shown


def test_a_second_cluster_is_refused(tmp_path: Path, capsys: Capture) -> None:
    with by_hand(tmp_path, capsys) as hand:
        hand.start(101, "form")
        seed = hand.addresses[101]
        code, why = hand.refusal("form", *hand.arguments(102), "--peers", seed)
        assert (code, "belongs to cluster" in why) == (6, True)
        assert not (tmp_path / "c102").exists()
        # The first of these fails at the lock, since its process runs.
        code, why = hand.refusal("form", *hand.arguments(101))
        assert (code, "is locked by process" in why) == (6, True)
        code, why = hand.refusal("run", "--directory", f"{tmp_path}/c101")
        assert (code, "is locked by process" in why) == (6, True)
        new = ["--directory", f"{tmp_path}/x", "--node-id", "101"]
        code, why = hand.refusal("join", seed, *new)
        assert (code, "is a voter already" in why) == (6, True)
        hand.processes[101].kill()
        code, why = hand.refusal("form", *hand.arguments(101))
        assert (code, "belongs to node 101" in why) == (6, True)


def test_a_member_of_another_cluster_is_refused(tmp_path: Path, capsys: Capture) -> None:
    with by_hand(tmp_path, capsys) as hand:
        hand.start(101, "form")
        seed, other = hand.addresses[101], f"{tmp_path}/other"
        code, _ = hand.command("form", f"--voter=7={other}@127.0.0.1:{free_port()}")
        assert code == 0
        code, why = hand.refusal("join", seed, "--node-id", "7", "--directory", other)
        assert (code, "belongs to cluster" in why) == (6, True)
        code, why = hand.refusal("run", "--directory", other, "--listen", seed)
        assert (code, "cannot listen on" in why) == (2, True)


def test_an_interrupted_join_goes_on(tmp_path: Path, capsys: Capture) -> None:
    with by_hand(tmp_path, capsys) as hand:
        hand.start(101, "form")
        seed = hand.addresses[101]
        hand.start(102, "join", seed).kill()
        hand.start(102, "join", seed)
        hand.wait_voters(101, 102)
        # A voter that is gone makes the quorum unhealthy.
        hand.processes[102].kill()
        code, document = hand.command("status", "-b", seed)
        assert code == 3
        assert "voter 102" in str(document["warnings"])


def test_signals_end_it_in_order(tmp_path: Path, capsys: Capture) -> None:
    with by_hand(tmp_path, capsys) as hand:
        node = hand.start(101, "form")
        assert node.terminate() == 0
        node = hand.start(101, "run")
        node.signal(signal.SIGINT)
        assert node.wait() == 130
