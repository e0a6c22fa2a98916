"""A drill of a quorum alone: clients change and read metadata while its leader is taken away.

What they did is one history, judged by the checkers that judge all drills. A finding about the peer
is a result, not a failure of the drill: it names the operations.
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
from chaos.peers.quorums import MetadataClient, Quorum
from kraftlog.errors import ConfigError, TimeoutError_

OPERATION_SECONDS = 10.0
WAIT_SECONDS = 60.0
WRITE_PAUSE_SECONDS = 0.005
READ_PAUSE_SECONDS = 0.05
PAUSE_SECONDS = 3.0
TOPICS_MAX = 30
SETTLED = 20
"""So many acknowledged changes, before the fault and after it."""

KILL = "kill"
PAUSE = "pause"
FAULTS = (KILL, PAUSE)


class _Change(Protocol):
    def __call__(self, name: str, *, seconds: float) -> PeerAnswer: ...


@dataclass(frozen=True, slots=True)
class QuorumResult:
    gaps: tuple[float, ...]
    """Of each fault: the longest time between two acknowledged changes, in seconds."""
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


def run_quorum_drill(
    quorum: Quorum, history_path: Path, *, fault: str = KILL, rounds: int = 1
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
            gaps = [_round(quorum, clients, history, fault) for _ in range(rounds)]
        finally:
            clients.stop()
        with contextlib.closing(quorum.client()) as client:
            read_once(client, history, "final")
    failures = _disagreement(quorum)
    return _judged(history_path, clients.acks, tuple(gaps), calm_end, failures)


def _disagreement(quorum: Quorum) -> tuple[str, ...]:
    try:
        quorum.await_agreement()
    except TimeoutError_ as error:
        return (str(error),)
    return ()


def _round(quorum: Quorum, clients: _Clients, history: HistoryWriter, fault: str) -> float:
    victim = quorum.await_leader()
    begun = history.now()
    history.event("fault", fault=fault, target=victim)
    if fault == KILL:
        quorum.kill(victim)
        clients.await_acks(history.now())
        quorum.restart(victim)
    else:
        quorum.pause(victim)
        try:
            time.sleep(PAUSE_SECONDS)
        finally:
            quorum.resume(victim)
    history.event("heal", target=victim)
    clients.await_acks(history.now())
    quorum.await_caught_up()
    return longest_gap([end for _, end in clients.acks], begun, history.now())


def _judged(
    path: Path,
    acks: list[tuple[float, float]],
    gaps: tuple[float, ...],
    calm_end: float,
    failures: tuple[str, ...],
) -> QuorumResult:
    history = read_history(path)
    judgement = judge(history)
    calm = [end - begun for begun, end in acks if end <= calm_end]
    return QuorumResult(
        gaps=gaps,
        write_p50=percentile(calm, 0.5),
        acked=len(acks),
        unknown=sum(each.outcome is Outcome.UNKNOWN for each in history.operations),
        findings=judgement.findings,
        failures=failures,
    )
