"""M3: a repeated request is answered as the first time."""

import pytest

from kraftlog._check import InvariantViolation
from metadata_log.decide import Decision
from metadata_log.decide.bootstrap import no_op
from metadata_log.decide.requests import answered, with_answer
from metadata_log.image import EMPTY
from metadata_log.places import Agenda
from metadata_log.records import RequestDone
from metadata_log.replay import load
from metadata_log.snapshot import write_records
from tests.metadata_log.clusters import Cluster


def test_the_answer_is_in_the_same_batch_as_the_effects() -> None:  # M10
    decision = with_answer(no_op(), b"client", 7, b"done")
    assert [each.record for each in decision.records][1:] == [RequestDone(b"client", 7, b"done")]


def test_a_repeat_gets_the_first_answer_also_from_a_snapshot() -> None:
    cluster = Cluster()
    assert answered(cluster.image, b"client", 7) is None
    cluster.decided(with_answer(no_op(), b"client", 7, b"done"))
    assert answered(cluster.image, b"client", 7) == b"done"
    assert answered(cluster.image, b"client", 8) is None
    assert answered(cluster.image, b"other", 7) is None
    loaded = load(write_records(cluster.image), cluster.image.end_offset)
    assert answered(loaded, b"client", 7) == b"done"
    assert answered(EMPTY, b"client", 7) is None


def test_work_in_steps_has_no_single_answer() -> None:
    unfinished = Decision((), None, Agenda())
    with pytest.raises(InvariantViolation, match="one batch"):
        with_answer(unfinished, b"client", 1, b"")
