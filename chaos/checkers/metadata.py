"""Changes and reads of metadata (M1 to M4): by their offsets, and by search as a second opinion.

Offsets make it a sort and a replay. What ended unknown has no offset: it may explain what is seen,
once each, from the moment it was asked for. Where the log itself is at hand, `judge_against_log`
looks such operations up in it.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chaos.checkers.findings import Anomaly, Finding
from chaos.checkers.linearizability import NEVER, Call, check
from chaos.checkers.operations import TopicChange, TopicRead, topic_changes, topic_reads
from chaos.history import History, Operation, Outcome

T = TypeVar("T", TopicChange, TopicRead)


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A topic that the metadata log creates or deletes; `offset` is the end of that batch."""

    topic: str
    creates: bool
    offset: int


def judge_metadata(history: History) -> list[Finding]:
    """M1, M2 and M4 by offsets; then whether any order at all explains what clients saw."""
    return [*judge_by_offsets(history), *judge_by_search(history)]


def judge_by_offsets(history: History) -> list[Finding]:
    """A sort and a replay. What shows half of a request (M10) contradicts its offset too."""
    changes, reads = list(topic_changes(history)), list(topic_reads(history))
    told = [read for read in reads if read.offset is not None]
    found = list(_in_time(list(_acked(changes)), told))
    for topic, of_topic in _by_topic(changes).items():
        story = _Story(topic, of_topic)
        found += story.replay()
        for read in reads:
            found += story.compare(read)
    return found


def _acked(changes: Iterable[TopicChange]) -> Iterator[TopicChange]:
    for change in changes:
        if change.operation.outcome is Outcome.OK and change.offset is not None:
            yield change


def _by_topic(changes: Iterable[TopicChange]) -> dict[str, list[TopicChange]]:
    found: dict[str, list[TopicChange]] = defaultdict(list)
    for change in changes:
        found[change.topic].append(change)
    return found


# -- M1 and M2: time and offsets agree


def _in_time(acked: Sequence[TopicChange], reads: Sequence[TopicRead]) -> Iterator[Finding]:
    """A change comes behind all that was known when it began, and a read shows no less."""
    known: list[TopicChange | TopicRead] = [*acked, *reads]
    for before, change in _after_each(known, acked):
        if _place(change) <= _place(before):
            words = f"offset {change.offset} was asked for after offset {before.offset} was known"
            yield _finding(Anomaly.M1, change.topic, words, before, change)
    for before, read in _after_each(known, reads):
        if _place(read) < _place(before):
            words = f"a read at offset {read.offset} began after offset {before.offset} was known"
            yield _finding(Anomaly.M2, _topic_of(before), words, before, read)


def _after_each(
    earlier: Iterable[TopicChange | TopicRead], later: Iterable[T]
) -> Iterator[tuple[TopicChange | TopicRead, T]]:
    """Each of the later ones with the highest that had ended before it began."""
    highest: TopicChange | TopicRead | None = None
    waiting = deque(sorted(earlier, key=_end))
    for each in sorted(later, key=lambda one: one.operation.invoked):
        while waiting and _end(waiting[0]) < each.operation.invoked:
            done = waiting.popleft()
            if highest is None or _place(done) > _place(highest):
                highest = done
        if highest is not None:
            yield highest, each


def _place(each: TopicChange | TopicRead) -> int:
    return each.offset or 0


def _end(each: TopicChange | TopicRead) -> float:
    return _end_of(each.operation)


def _topic_of(each: TopicChange | TopicRead) -> str:
    return each.topic if isinstance(each, TopicChange) else "all topics"


def _finding(anomaly: Anomaly, topic: str, words: str, *about: TopicChange | TopicRead) -> Finding:
    offsets = tuple(each.offset for each in about if each.offset is not None)
    return Finding(anomaly, topic, words, offsets, (), tuple(each.operation for each in about))


# -- M1, M2, M4: results are those of a replay


class _Story:
    """One topic: what surely happened to it, in order, and what may have."""

    def __init__(self, topic: str, changes: Sequence[TopicChange]) -> None:
        self.topic = topic
        self.acked = sorted(_acked(changes), key=_place)
        self.unsure = [each for each in changes if each.operation.outcome is Outcome.UNKNOWN]
        # Acknowledged without an offset: it has a place, but we do not know which.
        self.unsure += [
            each for each in changes if each.operation.outcome is Outcome.OK and each.offset is None
        ]
        self.failed = [each for each in changes if each.operation.outcome is Outcome.FAIL]

    def replay(self) -> Iterator[Finding]:
        unused = list(self.unsure)
        for before, change in zip(self.acked, self.acked[1:], strict=False):
            if before.offset == change.offset:
                words = f"two changes at offset {change.offset}"
                yield _finding(Anomaly.M1, self.topic, words, before, change)
            if before.creates != change.creates:
                continue
            between = _first(unused, creates=not change.creates, by=_end(change))
            if between is None:
                done = "created" if change.creates else "deleted"
                words = f"{done} twice, and nothing between that could explain it"
                yield _finding(Anomaly.M1, self.topic, words, before, change)
            else:
                unused.remove(between)

    def compare(self, read: TopicRead) -> Iterator[Finding]:
        """What a read shows of this topic is what the changes up to its offset made of it."""
        if read.offset is None or (read.asked is not None and self.topic not in read.asked):
            return
        before = [each for each in self.acked if _place(each) <= read.offset]
        last = before[-1] if before else None
        seen = self.topic in read.found
        expected = self._at_first() if last is None else last.creates
        if expected in (None, seen) or _first(self.unsure, creates=seen, by=_end(read)):
            return
        yield self._contradiction(read, last, seen=seen)

    def _at_first(self) -> bool | None:
        """Whether it was there before the history began; None if nobody can tell."""
        there = bool(self.acked) and not self.acked[0].creates
        # What ended unknown may have turned the one into the other; and whoever is refused a
        # deletion, with nothing else done to the topic, may have had one to delete.
        maybe = self.unsure if self.acked else [*self.unsure, *self.failed]
        others = [each for each in maybe if each.creates == there]
        return None if others else there

    def _contradiction(self, read: TopicRead, last: TopicChange | None, *, seen: bool) -> Finding:
        if seen and last is None and self.failed:
            words = f"a read at offset {read.offset} shows what a refused request asked for"
            return _finding(Anomaly.M4, self.topic, words, self.failed[0], read)
        state = "there" if seen else "missing"
        words = f"{state} in a read at offset {read.offset}, which no change up to it explains"
        about = (last, read) if last is not None else (read,)
        return _finding(Anomaly.M2, self.topic, words, *about)


def _first(changes: Iterable[TopicChange], *, creates: bool, by: float) -> TopicChange | None:
    for change in changes:
        if change.creates == creates and change.operation.invoked <= by:
            return change
    return None


def _end_of(operation: Operation) -> float:
    return NEVER if operation.ended is None else operation.ended


# -- the second opinion


@dataclass(frozen=True, slots=True)
class _Step:
    """A change, or what a read saw."""

    operation: Operation
    changes: bool
    there: bool


def _step(state: str, step: _Step) -> str | None:
    wanted = "absent" if step.changes == step.there else "there"
    if state not in (wanted, "either"):
        return None
    return "there" if step.there else "absent"


def judge_by_search(history: History) -> list[Finding]:
    """The second opinion: whether any order at all explains what clients saw of a topic."""
    return list(_unexplained(_by_topic(topic_changes(history)), list(topic_reads(history))))


def _unexplained(
    topics: dict[str, list[TopicChange]], reads: Sequence[TopicRead]
) -> Iterator[Finding]:
    for topic, changes in topics.items():
        calls = [_call(each.operation, True, each.creates) for each in changes]
        calls += [
            _call(read.operation, False, topic in read.found)
            for read in reads
            if read.asked is None or topic in read.asked
        ]
        verdict = check([call for call in calls if call is not None], "either", _step)
        if not verdict.is_linearizable:
            stuck = verdict.stuck_at.what.operation if verdict.stuck_at else changes[0].operation
            words = "no order of these operations explains what clients saw"
            yield Finding(Anomaly.NOT_LINEARIZABLE, topic, words, operations=(stuck,))


def _call(operation: Operation, changes: bool, there: bool) -> Call[_Step] | None:
    if operation.outcome is Outcome.FAIL:
        return None
    end = _end_of(operation) if operation.outcome is Outcome.OK else NEVER
    return Call(operation.invoked, end, _Step(operation, changes, there))


# -- the log itself


def judge_against_log(
    history: History, log: Sequence[LoggedChange], *, start_offset: int = 0
) -> list[Finding]:
    """M1, M3 and M4: what the log did to each topic, against what clients were told.

    Of a log that no longer begins at 0, only the changes that it still holds are looked for; how
    often something happened is then not known.
    """
    found: list[Finding] = []
    logged = {(each.topic, each.creates, each.offset) for each in log}
    changes = list(topic_changes(history))
    for change in _acked(changes):
        held = (change.topic, change.creates, change.offset) in logged
        if not held and (change.offset or 0) > start_offset:
            words = f"acknowledged at offset {change.offset}, where the log has no such change"
            found.append(_finding(Anomaly.M1, change.topic, words, change))
    if start_offset == 0:
        for topic, of_topic in _by_topic(changes).items():
            for creates in (True, False):
                same = [each for each in of_topic if each.creates == creates]
                done = [each for each in log if (each.topic, each.creates) == (topic, creates)]
                found += _too_often(topic, same, done)
                found += _too_seldom(topic, same, done)
    return found


def _too_seldom(
    topic: str, changes: Sequence[TopicChange], done: Sequence[LoggedChange]
) -> Iterator[Finding]:
    """Those that were acknowledged without an offset have to be somewhere."""
    acked = [each for each in changes if each.operation.outcome is Outcome.OK]
    unplaced = [each for each in acked if each.offset is None]
    placed = {each.offset for each in acked} & {each.offset for each in done}
    if len(done) - len(placed) < len(unplaced):
        words = f"acknowledged {len(acked)} times, and the log has it {len(done)} times"
        yield _finding(Anomaly.M1, topic, words, *unplaced[:2])


def _too_often(
    topic: str, changes: Sequence[TopicChange], done: Sequence[LoggedChange]
) -> Iterator[Finding]:
    failed = [each for each in changes if each.operation.outcome is Outcome.FAIL]
    most = len(changes) - len(failed)
    if not changes or len(done) <= most:
        return
    offsets = tuple(each.offset for each in done)
    anomaly = Anomaly.M4 if failed else Anomaly.M3
    asked = f"{most} times asked for" + (f", {len(failed)} times refused" if failed else "")
    words = f"the log has it {len(done)} times, and it was {asked}"
    about = tuple(each.operation for each in (failed or changes)[:2])
    yield Finding(anomaly, topic, words, offsets, (), about)
