import io

import pytest

from kraftctl.demo import FAILED, PASSED, _verdict, run_demo
from kraftctl.timeline import Timeline
from kraftctl.workload import Ack, _read_back, reckon
from kraftlog.types import TopicPartition


@pytest.mark.slow
def test_the_demo_tells_its_story_and_passes() -> None:
    out = io.StringIO()
    # Who reads in the second act is asked for the same as Spark is.
    assert run_demo(Timeline(out), settle_seconds=0.5, read_by_spark=_read_back) == PASSED
    text = out.getvalue()
    assert "kill -9 c" in text
    assert "kill -9 b" in text
    assert "VERDICT PASS" in text
    assert "all processes ended" in text
    assert "second act: Spark" in text
    assert "; lost 0, duplicated 0, reordered 0" in text


def test_a_lost_record_fails_the_demo() -> None:
    out = io.StringIO()
    lost = reckon([Ack(7, TopicPartition("t", 0), 0, 0.0)], [])
    assert _verdict(Timeline(out), {"read back": lost}, {"a cost": "1 s"}) == FAILED
    assert "VERDICT FAIL" in out.getvalue()
    assert "1, the first is 7" in out.getvalue()


def test_a_record_that_only_spark_misses_fails_the_demo() -> None:
    out = io.StringIO()
    acks = [Ack(number, TopicPartition("t", 0), number, 0.0) for number in (7, 8)]
    reckonings = {
        "read back": reckon(acks, [[7, 8]]),
        "read back by Spark": reckon(acks, [[8]]),
    }
    assert _verdict(Timeline(out), reckonings, {}) == FAILED
    assert "read back by Spark  1; lost 1, the first is 7, duplicated 0" in out.getvalue()
