"""What clients saw of each partition, against what a log may show (CHAOS.md 2.1).

Values are unique within a partition, so each finding names the record. Offsets come from those who
were acknowledged and those who read. Where consumers are compared, offsets are first made dense:
some belong to records that no client ever sees.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator

from chaos.checkers.findings import Anomaly, Finding, Value
from chaos.checkers.operations import Poll, Send, polls, sends
from chaos.history import History, HistoryDamaged, Operation, Outcome
from kraftlog.types import TopicPartition

Place = tuple[int, Operation]
"""An offset, and who said so."""


class PartitionHistory:
    """All that clients did to one partition and saw of it."""

    def __init__(self, key: TopicPartition, *, has_final: bool) -> None:
        self.key = key
        self.has_final = has_final
        self.sends: dict[Value, Send] = {}
        self.reads: dict[Value, list[Place]] = defaultdict(list)
        self.final: dict[Value, Place] = {}
        self.runs: dict[str, list[list[Poll]]] = defaultdict(list)
        """By process: its polls, in pieces between which it was moved."""

    def add_send(self, send: Send) -> None:
        known = self.sends.setdefault(send.value, send)
        if known is not send:
            raise HistoryDamaged(
                f"operations {known.operation.id} and {send.operation.id} send the same value"
                f" {send.value!r} to {self.key}",
                hint="number the values: only then it is clear which record is which",
            )

    def add_move(self, process: str) -> None:
        """From now on this consumer may be anywhere."""
        if process in self.runs:
            self.runs[process].append([])

    def add_poll(self, poll: Poll, *, is_final: bool) -> None:
        pieces = self.runs[poll.operation.process]
        if not pieces:
            pieces.append([])
        pieces[-1].append(poll)
        for offset, value in poll.records:
            self.reads[value].append((offset, poll.operation))
            if is_final:
                self.final.setdefault(value, (offset, poll.operation))

    def findings(self) -> Iterator[Finding]:
        yield from self._inconsistent()
        yield from self._duplicates()
        yield from self._phantoms()
        yield from self._missing()
        yield from self._reordered()
        yield from self._wandering()

    def _finding(
        self,
        anomaly: Anomaly,
        words: str,
        offsets: Iterable[int],
        values: Iterable[Value],
        operations: Iterable[Operation],
    ) -> Finding:
        return Finding(
            anomaly, str(self.key), words, tuple(offsets), tuple(values), tuple(operations)
        )

    # -- one offset, one value

    def _sightings(self, value: Value) -> dict[int, Operation]:
        """Each offset at which a value was, with the first who said so."""
        send = self.sends.get(value)
        found: dict[int, Operation] = {}
        if send is not None and send.is_acked and send.offset is not None:
            found[send.offset] = send.operation
        for offset, operation in self.reads.get(value, ()):
            found.setdefault(offset, operation)
        return found

    def _values(self) -> list[Value]:
        return list(dict.fromkeys([*self.sends, *self.reads]))

    def _inconsistent(self) -> Iterator[Finding]:
        holders: dict[int, dict[Value, Operation]] = defaultdict(dict)
        for value in self._values():
            for offset, operation in self._sightings(value).items():
                holders[offset][value] = operation
        for offset, values in sorted(holders.items()):
            if len(values) > 1:
                words = f"offset {offset} holds {' and '.join(map(repr, values))}"
                yield self._finding(
                    Anomaly.INCONSISTENT_OFFSETS, words, [offset], values, values.values()
                )

    def _duplicates(self) -> Iterator[Finding]:
        for value in self._values():
            found = self._sightings(value)
            if len(found) > 1:
                words = f"{value!r} is at offsets {', '.join(map(str, found))}"
                yield self._finding(
                    Anomaly.DUPLICATE, words, found, [value], list(found.values())[:2]
                )

    # -- reads of what nobody wrote

    def _phantoms(self) -> Iterator[Finding]:
        for value, places in self.reads.items():
            offset, reader = places[0]
            send = self.sends.get(value)
            if send is None:
                words = f"{value!r} was read and never sent"
                yield self._finding(Anomaly.PHANTOM_READ, words, [offset], [value], [reader])
            elif send.operation.outcome is Outcome.FAIL:
                words = f"{value!r} was read, and its send surely failed"
                operations = [send.operation, reader]
                yield self._finding(Anomaly.ABORTED_READ, words, [offset], [value], operations)

    # -- writes that nobody read

    def _missing(self) -> Iterator[Finding]:
        """With a final read, all that was acknowledged or once read has to be in it; without, all
        that was acknowledged has to have been read by somebody.
        """
        found = set(self.final) if self.has_final else set(self.reads)
        seen = self.final.values() if self.has_final else self._all_places()
        last = max(seen, key=lambda place: place[0], default=None)
        must = [send.value for send in self.sends.values() if send.is_acked]
        must += [value for value in self.reads if value not in self.sends or self._is_unsure(value)]
        for value in must:
            if value not in found:
                yield self._absent(value, last)

    def _is_unsure(self, value: Value) -> bool:
        return self.sends[value].operation.outcome is Outcome.UNKNOWN

    def _all_places(self) -> list[Place]:
        return [place for places in self.reads.values() for place in places]

    def _absent(self, value: Value, last: Place | None) -> Finding:
        """Lost, if something behind it was read; else it may just be late."""
        sightings = self._sightings(value)
        offset = min(sightings, default=None)
        witnesses = [*list(sightings.values())[:1], *([last[1]] if last else [])]
        if not sightings and value in self.sends:
            witnesses.insert(0, self.sends[value].operation)
        if offset is None or last is None or offset > last[0]:
            words = f"{value!r} was acknowledged or read, and the reads did not get that far"
            anomaly = Anomaly.UNSEEN
        else:
            words = f"{value!r} at offset {offset} is gone, though offset {last[0]} was read"
            anomaly = Anomaly.LOST
        return self._finding(anomaly, words, sightings, [value], witnesses)

    # -- the order of writes

    def _reordered(self) -> Iterator[Finding]:
        """A producer's records stand in its order; so do any two of which one was acknowledged
        before the other was sent.
        """
        placed = [
            (min(sightings), send)
            for send in self.sends.values()
            if (sightings := self._sightings(send.value))
        ]
        placed.sort(key=lambda each: each[1].operation.id)
        told: set[int] = set()
        for finding in [*self._out_of_turn(placed), *self._back_in_time(placed)]:
            later = finding.operations[1].id
            if later not in told:
                told.add(later)
                yield finding

    def _out_of_turn(self, placed: list[tuple[int, Send]]) -> Iterator[Finding]:
        latest: dict[str, tuple[int, Send]] = {}
        for offset, send in placed:
            before = latest.get(send.operation.process)
            if before is not None and offset < before[0]:
                yield self._swapped(before, (offset, send), "sent later by the same producer")
            else:
                latest[send.operation.process] = (offset, send)

    def _back_in_time(self, placed: list[tuple[int, Send]]) -> Iterator[Finding]:
        ended: list[tuple[float, int, tuple[int, Send]]] = []
        highest: tuple[int, Send] | None = None
        for offset, send in sorted(placed, key=lambda each: each[1].operation.invoked):
            while ended and ended[0][0] < send.operation.invoked:
                done = heapq.heappop(ended)[2]
                highest = done if highest is None or done[0] > highest[0] else highest
            if highest is not None and offset < highest[0]:
                yield self._swapped(highest, (offset, send), "sent after the other was acked")
            if send.is_acked:
                end = send.operation.ended or 0.0
                heapq.heappush(ended, (end, send.operation.id, (offset, send)))

    def _swapped(self, first: tuple[int, Send], second: tuple[int, Send], why: str) -> Finding:
        one, two = first[1], second[1]
        words = f"{two.value!r} at {second[0]} is before {one.value!r} at {first[0]}, but was {why}"
        return self._finding(
            Anomaly.REORDERED,
            words,
            (first[0], second[0]),
            (one.value, two.value),
            (one.operation, two.operation),
        )

    # -- the way of consumers

    def _wandering(self) -> Iterator[Finding]:
        by_offset = {offset: value for value in self.reads for offset, _ in self.reads[value]}
        offsets = sorted(by_offset)
        ranks = {offset: rank for rank, offset in enumerate(offsets)}
        for before, after in self._all_steps():
            if ranks[after[0]] - ranks[before[0]] != 1:
                between = offsets[ranks[before[0]] + 1 : ranks[after[0]]]
                missed = [by_offset[offset] for offset in between]
                yield self._jump(before, after, between, missed)

    def _all_steps(self) -> Iterator[tuple[Place, Place]]:
        for pieces in self.runs.values():
            for piece in pieces:
                yield from _steps(piece)

    def _jump(
        self, before: Place, after: Place, between: list[int], missed: list[Value]
    ) -> Finding:
        operations = (before[1], after[1])
        if between:
            words = f"{len(between)} records between offsets {before[0]} and {after[0]} were passed"
            return self._finding(Anomaly.SKIPPED, words, between, missed, operations)
        words = f"offset {after[0]} comes after offset {before[0]}"
        offsets = (before[0], after[0])
        return self._finding(Anomaly.NON_MONOTONIC_POLL, words, offsets, (), operations)


def _steps(piece: list[Poll]) -> Iterator[tuple[Place, Place]]:
    before: Place | None = None
    for poll in piece:
        for offset, _ in poll.records:
            after = (offset, poll.operation)
            if before is not None:
                yield before, after
            before = after


def partition_histories(history: History, *, final_read: str = "final") -> list[PartitionHistory]:
    """By partition. `final_read` is the process that read everything in the end."""
    found: dict[TopicPartition, PartitionHistory] = {}
    polled = list(polls(history))
    has_final = any(isinstance(each, Poll) and _is_of(each, final_read) for each in polled)

    def at(key: TopicPartition) -> PartitionHistory:
        return found.setdefault(key, PartitionHistory(key, has_final=has_final))

    for send in sends(history):
        at(send.key).add_send(send)
    for each in polled:
        if isinstance(each, Poll):
            at(each.key).add_poll(each, is_final=_is_of(each, final_read))
        else:
            for partition in found.values():
                partition.add_move(each.process)
    return [found[key] for key in sorted(found)]


def _is_of(poll: Poll, process: str) -> bool:
    return poll.operation.process == process


def judge_partitions(
    history: History, *, final_read: str = "final"
) -> tuple[list[Finding], dict[str, int]]:
    """Everything that is wrong, and how much was acknowledged, read, failed or left unknown."""
    partitions = partition_histories(history, final_read=final_read)
    findings = [finding for each in partitions for finding in each.findings()]
    outcomes = [send.operation.outcome for each in partitions for send in each.sends.values()]
    counts = {
        "acked": outcomes.count(Outcome.OK),
        "read": sum(len(each.reads) for each in partitions),
        "unknown": outcomes.count(Outcome.UNKNOWN),
        "failed": outcomes.count(Outcome.FAIL),
    }
    return findings, counts
