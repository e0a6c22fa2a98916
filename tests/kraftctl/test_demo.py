import io

import pytest

from kraftctl.demo import FAILED, PASSED, _verdict, run_demo
from kraftctl.timeline import Timeline
from kraftctl.workload import Ack, reckon
from kraftlog.types import TopicPartition


@pytest.mark.slow
def test_the_demo_tells_its_story_and_passes() -> None:
    out = io.StringIO()
    assert run_demo(Timeline(out), settle_seconds=0.5) == PASSED
    text = out.getvalue()
    assert "kill -9 c" in text
    assert "kill -9 b" in text
    assert "VERDICT PASS" in text
    assert "all processes ended" in text


def test_a_lost_record_fails_the_demo() -> None:
    out = io.StringIO()
    lost = reckon([Ack(7, TopicPartition("t", 0), 0, 0.0)], [])
    assert _verdict(Timeline(out), lost, {"a cost": "1 s"}) == FAILED
    assert "VERDICT FAIL" in out.getvalue()
    assert "1, the first is 7" in out.getvalue()
