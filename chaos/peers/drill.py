"""A drill of a quorum alone: clients change and read metadata while its leader is taken away.

What they did is one history, judged by the checkers that judge all drills. A finding about the peer
is a result like any other: it names the operations.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from chaos.checkers import Finding, judge
from chaos.history import HistoryWriter, Json, Outcome, read_history
from chaos.live.measure import longest_gap, percentile
from chaos.peers.client import PeerAnswer
from chaos.peers.faults import FAULTS, KILL, Fault
from chaos.peers.quorums import MetadataClient, Quorum
from kraftlog.errors import ConfigError, TimeoutError_

OPERATION_SECONDS = 10.0
WAIT_SECONDS = 60.0
WRITE_PAUSE_SECONDS = 0.005
READ_PAUSE_SECONDS = 0.05
TOPICS_MAX = 30
SETTLED = 20
"""So many acknowledged changes, before the fault and after it."""

Say = Callable[[str, str], None]
"""Text and kind, as `chaos.live.stage` has them."""


class _Change(Protocol):
    def __call__(self, name: str, *, seconds: float) -> PeerAnswer: ...


@dataclass(frozen=True, slots=True)
class QuorumResult:
    gaps: tuple[float, ...]
    """Of each fault: the longest time between two acknowledged changes, in seconds. Where no
    change can be acknowledged while it lasts, that after its heal.
    """
    converged: tuple[float, ...]
    """Of each fault: how long after its heal all nodes had everything."""
    write_p50: float
    """Of changes before the first fault, in seconds."""
    acked: int
    unknown: int
    findings: tuple[Finding, ...]
    failures: tuple[str, ...] = ()
    """What the quorum did not reach once all was healed."""

    @property
    def passed(self) -> bool:
        return not self.findings and not self.failures


class _Clients:
    """One that changes and one that reads, each on a thread."""

    def __init__(self, quorum: Quorum, history: HistoryWriter) -> None:
        self._quorum = quorum
        self._history = history
        self._stopped = threading.Event()
        self._failures: list[BaseException] = []
        self.acks: list[tuple[float, float]] = []
        """When each change began, and when it was acknowledged."""
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._write, self._read)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _guarded(self, work: Callable[[MetadataClient], None]) -> None:
        try:
            with contextlib.closing(self._quorum.client()) as client:
                work(client)
        except BaseException as error:  # noqa: BLE001 - raised again by `stop`
            self._failures.append(error)

    def _write(self, client: MetadataClient) -> None:
        number = 0
        while not self._stopped.wait(WRITE_PAUSE_SECONDS):
            number += 1
            self._change("create_topic", f"topic-{number}", client.create_topic)
            if number > TOPICS_MAX:
                self._change("delete_topic", f"topic-{number - TOPICS_MAX}", client.delete_topic)

    def _change(self, op: str, name: str, act: _Change) -> None:
        begun = self._history.now()
        operation = self._history.invoke("writer", op, {"topic": name})
        answer = act(name, seconds=OPERATION_SECONDS)
        _record(self._history, operation, answer, _offset(answer))
        if answer.outcome is Outcome.OK:
            self.acks.append((begun, self._history.now()))

    def _read(self, client: MetadataClient) -> None:
        while not self._stopped.wait(READ_PAUSE_SECONDS):
            read_once(client, self._history, "reader")

    def await_acks(self, since: float) -> None:
        """Changes that were asked for after this moment, and acknowledged."""
        deadline = time.monotonic() + WAIT_SECONDS
        while sum(begun >= since for begun, _ in self.acks) < SETTLED:
            if self._failures:
                raise self._failures[0]
            if time.monotonic() > deadline:
                raise TimeoutError_(f"no {SETTLED} changes were acked within {WAIT_SECONDS:g} s")
            time.sleep(WRITE_PAUSE_SECONDS)


def _offset(answer: PeerAnswer) -> dict[str, Json]:
    return {} if answer.offset is None else {"offset": answer.offset}


def _record(
    history: HistoryWriter, operation: int, answer: PeerAnswer, result: dict[str, Json]
) -> None:
    if answer.outcome is Outcome.OK:
        history.ok(operation, result)
    elif answer.outcome is Outcome.FAIL:
        history.fail(operation, answer.error)
    else:
        history.unknown(operation, answer.error)


def read_once(client: MetadataClient, history: HistoryWriter, process: str) -> None:
    operation = history.invoke(process, "list_topics", {})
    answer = client.list_topics(seconds=OPERATION_SECONDS)
    _record(history, operation, answer, {**_offset(answer), "topics": list(answer.topics)})


def _quiet(text: str, kind: str) -> None:
    del text, kind


def run_quorum_drill(
    quorum: Quorum,
    history_path: Path,
    *,
    fault: str = KILL,
    rounds: int = 1,
    say: Say = _quiet,
) -> QuorumResult:
    """Take the leader away so many times, each time once all is well again."""
    if fault not in FAULTS:
        raise ConfigError(f"there is no fault {fault!r}", hint=f"there are {', '.join(FAULTS)}")
    with HistoryWriter(history_path) as history:
        clients = _Clients(quorum, history)
        clients.start()
        try:
            clients.await_acks(0.0)
            calm_end = history.now()
            play = _Play(quorum, clients, history, say)
            for _ in range(rounds):
                play.round(FAULTS[fault])
        finally:
            clients.stop()
        with contextlib.closing(quorum.client()) as client:
            read_once(client, history, "final")
        play.await_agreement()
    return play.judged(history_path, calm_end)


class _Play:
    """Rounds on one quorum, and what came of them."""

    def __init__(self, quorum: Quorum, clients: _Clients, history: HistoryWriter, say: Say) -> None:
        self._quorum = quorum
        self._clients = clients
        self._history = history
        self._say = say
        self._gaps: list[float] = []
        self._converged: list[float] = []
        self._failures: list[str] = []

    def round(self, fault: Fault) -> None:
        leader = self._leader()
        victims = [leader, *self._quorum.followers(leader)][: fault.victims]
        begun = self._history.now()
        for victim in victims:
            self._history.event("fault", fault=fault.name, target=victim)
            self._say(f"{fault.name} {victim}", "act")
            fault.hit(self._quorum, victim)
        broken = self._history.now()
        self._hold(fault, broken)
        healed = self._history.now()
        for victim in victims:
            fault.mend(self._quorum, victim)
            self._history.event("heal", fault=fault.name, target=victim)
        self._clients.await_acks(self._history.now())
        self._gap(healed if fault.stops_all else begun)
        self._quorum.await_caught_up()
        self._converged.append(self._history.now() - healed)
        self._say(f"all nodes have everything {self._converged[-1]:.2f} s after the heal", "good")
        self._leader()

    def _leader(self) -> str:
        epoch, leader = self._quorum.await_reign()
        self._history.event("controller", leader=leader, epoch=epoch)
        self._say(f"{leader} leads epoch {epoch}", "good")
        return leader

    def _hold(self, fault: Fault, broken: float) -> None:
        """Until the others go on, or for a while; nothing is acknowledged without a majority."""
        if fault.hold_seconds:
            time.sleep(fault.hold_seconds)
        else:
            self._clients.await_acks(broken)
        if not fault.stops_all:
            self._leader()
        elif any(asked >= broken for asked, _ in self._clients.acks):
            self._failures.append("a change was acknowledged without a majority")

    def _gap(self, since: float) -> None:
        acks = [end for _, end in self._clients.acks]
        self._gaps.append(longest_gap(acks, since, self._history.now()))
        self._say(f"{self._gaps[-1]:.3f} s without an acknowledged change", "plain")

    def await_agreement(self) -> None:
        try:
            self._quorum.await_agreement()
        except TimeoutError_ as error:
            self._failures.append(str(error))

    def judged(self, path: Path, calm_end: float) -> QuorumResult:
        history = read_history(path)
        acks = self._clients.acks
        calm = [end - begun for begun, end in acks if end <= calm_end]
        return QuorumResult(
            gaps=tuple(self._gaps),
            converged=tuple(self._converged),
            write_p50=percentile(calm, 0.5),
            acked=len(acks),
            unknown=sum(each.outcome is Outcome.UNKNOWN for each in history.operations),
            findings=judge(history).findings,
            failures=tuple(self._failures),
        )
