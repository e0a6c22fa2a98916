"""Planted histories of metadata, each with a neighbour that is right; then the two judges of them,
offsets and search, against each other.
"""

from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.checkers.findings import Finding
from chaos.checkers.metadata import (
    LoggedChange,
    judge_against_log,
    judge_by_offsets,
    judge_by_search,
    judge_metadata,
)
from chaos.history import History
from tests.chaos.checkers.scripts import FAIL, OK, UNKNOWN, Script, Span, named


def by_offsets(script: Script) -> Finding:
    (finding,) = judge_by_offsets(script.history)
    return finding


def is_good(script: Script) -> bool:
    return judge_metadata(script.history) == []


def test_a_run_in_which_all_went_well() -> None:
    script = Script()
    script.read([], 0)
    script.create("a", 2)
    script.create("b", 4)
    script.read(["a", "b"], 4)
    script.delete("a", 5)
    script.read(["b"], 5)
    script.read([], 6, asked=["a"])
    script.create("a", 7)
    script.read(["a", "b"])
    assert is_good(script)


# -- M1


def test_m1_offsets_fall_while_time_goes_on() -> None:
    script = Script()
    script.create("a", 5)
    script.create("b", 4)
    finding = by_offsets(script)
    assert (finding.anomaly, finding.key, finding.offsets) == ("M1", "b", (5, 4))
    assert [each.op for each in finding.operations] == ["create_topic", "create_topic"]


def test_m1_changes_at_one_time_have_any_offsets() -> None:
    script = Script()
    script.create("a", 5, at=(0.0, 2.0))
    script.create("b", 4, at=(2.0, 3.0))
    assert is_good(script)


def test_m1_a_change_comes_behind_what_a_read_has_seen() -> None:
    script = Script()
    script.create("a", 5)
    script.read(["a"], 9, asked=["a"])
    script.create("b", 8)
    finding = by_offsets(script)
    assert (finding.anomaly, finding.key, finding.offsets) == ("M1", "b", (9, 8))


def test_m1_created_twice_without_a_deletion_between() -> None:
    script = Script()
    script.create("a", 2)
    script.create("a", 4)
    finding = by_offsets(script)
    assert finding.anomaly == "M1"
    assert finding.words == "created twice, and nothing between that could explain it"


def test_m1_a_deletion_of_unknown_outcome_explains_a_second_creation_once() -> None:
    script = Script()
    script.create("a", 2)
    script.delete("a", outcome=UNKNOWN)
    script.create("a", 4)
    assert is_good(script)
    script.create("a", 6)
    assert by_offsets(script).anomaly == "M1"


def test_m1_two_changes_of_one_topic_at_one_offset() -> None:
    script = Script()
    script.create("a", 2, at=(0.0, 1.0))
    script.delete("a", 2, at=(0.0, 1.0))
    assert by_offsets(script).words == "two changes at offset 2"


# -- M2


def test_m2_a_read_that_is_older_than_what_was_acknowledged_before_it() -> None:
    script = Script()
    script.create("a", 5)
    script.read([], 4)
    finding = by_offsets(script)
    assert (finding.anomaly, finding.key, finding.offsets) == ("M2", "a", (5, 4))
    assert named(judge_by_search(script.history)) == ["not linearizable"]


def test_m2_a_read_at_the_time_of_a_change_may_see_it_or_not() -> None:
    for topics, offset in (([], 4), (["a"], 5)):
        script = Script()
        script.create("a", 5, at=(0.0, 2.0))
        script.read(topics, offset, at=(1.0, 2.0))
        assert is_good(script)


def test_m2_a_read_that_is_older_than_an_earlier_read() -> None:
    script = Script()
    script.create("a", 5, at=(0.0, 9.0))
    script.read(["a"], 5, at=(1.0, 2.0))
    script.read([], 4, at=(3.0, 4.0))
    finding = by_offsets(script)
    assert (finding.anomaly, finding.offsets) == ("M2", (5, 4))
    assert named(judge_by_search(script.history)) == ["not linearizable"]


@pytest.mark.parametrize(("topics", "word"), [([], "missing"), (["a"], "there")])
def test_m2_a_read_is_what_the_changes_up_to_its_offset_made(topics: list[str], word: str) -> None:
    script = Script()
    if topics:
        script.delete("a", 5)
    else:
        script.create("a", 5)
    script.read(topics, 6)
    finding = by_offsets(script)
    assert (finding.anomaly, finding.key, finding.offsets) == ("M2", "a", (5, 6))
    assert finding.words.startswith(f"{word} in a read at offset 6")


def test_m2_what_comes_first_tells_what_was_there_before() -> None:
    script = Script()
    script.read(["a"], 3)
    script.delete("a", 5)
    assert is_good(script)
    script = Script()
    script.read([], 3)
    script.delete("a", 5)
    assert by_offsets(script).anomaly == "M2"
    assert named(judge_by_search(script.history)) == ["not linearizable"]


def test_m2_a_change_of_unknown_outcome_explains_what_is_seen_from_then_on() -> None:
    script = Script()
    script.read([], 3)
    script.create("a", outcome=UNKNOWN)
    script.read([], 4)
    script.read(["a"], 9)
    assert is_good(script)


def test_m2_nothing_is_seen_before_it_was_asked_for() -> None:
    script = Script()
    script.read(["a"], 3)
    script.create("a", 5)
    script.create("b", outcome=UNKNOWN)
    assert by_offsets(script).anomaly == "M2"
    assert named(judge_by_search(script.history)) == ["not linearizable"]


def test_m2_a_read_is_judged_by_what_it_was_asked_for() -> None:
    script = Script()
    script.create("a", 5)
    script.create("b", 6)
    script.read(["b"], 6, asked=["b"])
    assert is_good(script)


def test_m10_half_of_a_request_is_seen() -> None:  # M10
    script = Script()
    script.create("a", 5, at=(0.0, 1.0))
    script.create("b", 5, at=(0.0, 1.0))
    script.read([], 4, at=(0.5, 1.0))
    script.read(["a", "b"], 5)
    assert is_good(script)
    script.read(["a"], 5)
    finding = by_offsets(script)
    assert (finding.anomaly, finding.key) == ("M2", "b")


# -- M3 and M4


def test_m4_a_read_shows_what_was_refused() -> None:
    script = Script()
    script.create("a", outcome=FAIL)
    script.read([], 4)
    assert is_good(script)
    script.read(["a"], 5)
    finding = by_offsets(script)
    assert (finding.anomaly, finding.key) == ("M4", "a")
    assert [each.outcome for each in finding.operations] == ["fail", "ok"]


def test_m4_a_refused_deletion_leaves_the_topic_there() -> None:
    script = Script()
    script.delete("old", outcome=FAIL)
    script.read(["old"], 4)
    assert is_good(script)


def created(*offsets: int) -> list[LoggedChange]:
    return [LoggedChange("a", True, offset) for offset in offsets]


def test_the_log_holds_what_was_acknowledged_where_it_was_acknowledged() -> None:  # M1
    script = Script()
    script.create("a", 2)
    script.create("b", outcome=UNKNOWN)
    assert judge_against_log(script.history, created(2)) == []
    for log in ([], created(3), [LoggedChange("a", False, 2)], [LoggedChange("b", True, 2)]):
        found = judge_against_log(script.history, log)
        assert named(found) == ["M1"], log
        assert found[0].words == "acknowledged at offset 2, where the log has no such change"


def test_the_log_holds_also_what_was_acknowledged_without_an_offset() -> None:  # M1
    script = Script()
    script.create("a")
    assert judge_against_log(script.history, created(2)) == []
    (finding,) = judge_against_log(script.history, [])
    assert (finding.anomaly, finding.key) == ("M1", "a")
    assert finding.words == "acknowledged 1 times, and the log has it 0 times"
    script.delete("a", 5)
    script.create("a", 7)
    gone = LoggedChange("a", False, 5)
    assert judge_against_log(script.history, [*created(2, 7), gone]) == []
    assert named(judge_against_log(script.history, [*created(7), gone])) == ["M1"]


def test_m3_what_ended_unknown_happened_twice() -> None:
    script = Script()
    script.create("a", outcome=UNKNOWN)
    for log in ([], created(2)):
        assert judge_against_log(script.history, log) == []
    (finding,) = judge_against_log(script.history, created(2, 6))
    assert (finding.anomaly, finding.key, finding.offsets) == ("M3", "a", (2, 6))


def test_m4_the_log_holds_what_was_refused() -> None:
    script = Script()
    script.create("a", outcome=FAIL)
    assert judge_against_log(script.history, []) == []
    (finding,) = judge_against_log(script.history, created(2))
    assert (finding.anomaly, finding.key) == ("M4", "a")


def test_of_a_log_that_lost_its_beginning_only_the_rest_is_asked_for() -> None:
    script = Script()
    script.create("a", 2)
    script.delete("a")
    script.create("a", 9)
    assert judge_against_log(script.history, created(9), start_offset=5) == []
    assert named(judge_against_log(script.history, [], start_offset=5)) == ["M1"]


# -- the search knows nothing of offsets


def test_the_second_opinion_without_any_offset() -> None:
    script = Script()
    script.create("a")
    script.read(["a"])
    script.delete("a", outcome=UNKNOWN)
    script.read(["a"])
    script.read([])
    assert is_good(script)
    stale = script.read(["a"])
    (finding,) = judge_metadata(script.history)
    assert (finding.anomaly, finding.key) == ("not linearizable", "a")
    assert finding.operations == (stale,)


def test_the_second_opinion_is_asked_topic_by_topic() -> None:
    script = Script()
    script.create("a")
    script.create("b")
    script.read(["b"])
    assert [each.key for each in judge_by_search(script.history)] == ["a"]


# -- both judges on the same small histories


class Deed(NamedTuple):
    """An operation on topic `t` that ended well."""

    kind: str
    begin: int
    length: int

    @property
    def is_change(self) -> bool:
        return self.kind in ("create", "delete")

    def perform(self, script: Script, offset: int | None) -> None:
        at: Span = (float(self.begin), float(self.begin + self.length))
        if self.kind == "create":
            script.create("t", offset, at=at)
        elif self.kind == "delete":
            script.delete("t", offset, at=at)
        else:
            script.read(["t"] if self.kind == "there" else [], offset, at=at)


kinds = st.sampled_from(["create", "delete", "there", "missing"])
deeds = st.builds(Deed, kinds, st.integers(0, 6), st.integers(0, 4))


def with_offsets(order: tuple[Deed, ...]) -> History:
    """As if they had taken effect in this order."""
    script = Script()
    offset = 0
    for deed in order:
        offset += deed.is_change
        deed.perform(script, offset)
    return script.history


@given(st.lists(deeds, max_size=5))
def test_both_judges_agree_about_every_small_history(some: list[Deed]) -> None:
    """There is an order with which the judge of offsets is content, if and only if the search
    finds one.
    """
    script = Script()
    for deed in some:
        deed.perform(script, None)
    found = any(not judge_by_offsets(with_offsets(order)) for order in permutations(some))
    assert found == (judge_by_search(script.history) == [])


class Told(NamedTuple):
    """How the client learns of an operation that takes effect at one moment."""

    kind: str
    outcome: str
    offset: bool
    before: int
    after: int


told = st.builds(
    Told,
    st.sampled_from(["create", "delete", "read", "read"]),
    st.sampled_from(["ok", "ok", "ok", "unknown", "never done"]),
    st.booleans(),
    st.integers(0, 25),
    st.integers(0, 25),
)


class Truth:
    """One topic that really changes, step by step, and what clients hear of it."""

    def __init__(self, *, always_offsets: bool = False) -> None:
        self.script = Script()
        self.log: list[LoggedChange] = []
        self.always_offsets = always_offsets
        self.is_there = False

    def step(self, moment: int, told: Told) -> None:
        at: Span = (10.0 * moment - told.before, 10.0 * moment + told.after)
        offset = len(self.log) if told.offset or self.always_offsets else None
        if told.kind == "read":
            self.script.read(["t"] if self.is_there else [], offset, at=at)
            return
        creates = told.kind == "create"
        if creates == self.is_there:
            self._tell(creates, None, "fail", at)
            return
        if told.outcome != "never done":
            self.is_there = creates
            self.log.append(LoggedChange("t", creates, len(self.log) + 1))
        offset = None if offset is None else len(self.log)
        self._tell(creates, offset, told.outcome, at)

    def _tell(self, creates: bool, offset: int | None, outcome: str, at: Span) -> None:
        act = self.script.create if creates else self.script.delete
        if outcome == "ok":
            act("t", offset, outcome=OK, at=at)
        elif outcome == "fail":
            act("t", outcome=FAIL, at=at)
        else:
            act("t", outcome=UNKNOWN, at=at)


@given(st.lists(told, max_size=12))
def test_no_judge_complains_about_what_really_happened(steps: list[Told]) -> None:
    truth = Truth()
    for moment, step in enumerate(steps):
        truth.step(moment, step)
    history = truth.script.history
    assert judge_by_offsets(history) == []
    assert judge_by_search(history) == []
    assert judge_against_log(history, truth.log) == []


@given(st.lists(told, min_size=2, max_size=12), st.data())
def test_a_read_that_shows_the_opposite_is_always_found(
    steps: list[Told], data: st.DataObject
) -> None:
    truth = Truth(always_offsets=True)
    truth.step(0, Told("create", "ok", True, 0, 0))
    for moment, step in enumerate([*steps, Told("read", "ok", True, 0, 0)], 1):
        truth.step(moment, step._replace(outcome="ok"))
    script = truth.script
    reads = [each for each in script.operations if each.op == "list_topics"]
    read = data.draw(st.sampled_from(reads))
    result = read.result
    assert isinstance(result, dict)
    topics = [] if result["topics"] else ["t"]
    script.operations[read.id] = replace(read, result={**result, "topics": topics})
    (finding,) = judge_by_offsets(script.history)
    assert finding.anomaly in ("M2", "M4")


@given(st.lists(told, min_size=1, max_size=12), st.data())
def test_a_change_that_the_log_lost_or_repeats_is_always_found(
    steps: list[Told], data: st.DataObject
) -> None:
    truth = Truth()
    truth.step(0, Told("create", "ok", False, 0, 0))
    for moment, step in enumerate(steps, 1):
        truth.step(moment, step._replace(outcome="ok"))
    at = data.draw(st.integers(0, len(truth.log) - 1))
    history, log = truth.script.history, truth.log
    assert "M1" in named(judge_against_log(history, log[:at] + log[at + 1 :]))
    twice = [*log, replace(log[at], offset=len(log) + 1)]
    assert {"M3", "M4"} & set(named(judge_against_log(history, twice)))
