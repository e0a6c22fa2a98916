import io

import pytest

from kraftctl.demo import Verdict, run_demo
from kraftctl.schema_command import read_schema
from kraftctl.timeline import Timeline
from kraftctl.workload import Ack, _read_back, reckon
from kraftlog.types import TopicPartition
from tests.kraftctl.json_schema import violations


@pytest.mark.slow
def test_the_demo_tells_its_story_and_passes() -> None:
    out = io.StringIO()
    # Who reads in the second act is asked for the same as Spark is.
    verdict = run_demo(Timeline(out), settle_seconds=0.5, read_by_spark=_read_back)
    assert verdict.is_good
    schema = read_schema("demo")["properties"]["data"]  # type: ignore[index,call-overload] # has it
    assert list(violations(verdict.document(), schema)) == []
    text = out.getvalue()
    assert "kill -9 c" in text
    assert "kill -9 b" in text
    assert "VERDICT PASS" in text
    assert "all processes ended" in text
    assert "second act: Spark" in text
    assert "; lost 0, duplicated 0, reordered 0" in text


def test_a_lost_record_fails_the_demo() -> None:
    lost = reckon([Ack(7, TopicPartition("t", 0), 0, 0.0)], [])
    verdict = Verdict({"read back": lost}, {"a cost": 1.0})
    assert not verdict.is_good
    assert verdict.rows()["lost"] == "1, the first is 7"
    assert verdict.rows()["a cost"] == "1.00 s"


def test_a_process_that_is_left_fails_the_demo() -> None:
    verdict = Verdict({"read back": reckon([], [])}, {}, (4711,))
    assert not verdict.is_good
    assert verdict.rows()["left running"] == "4711"


def test_a_record_that_only_spark_misses_fails_the_demo() -> None:
    acks = [Ack(number, TopicPartition("t", 0), number, 0.0) for number in (7, 8)]
    reckonings = {
        "read back": reckon(acks, [[7, 8]]),
        "read back by Spark": reckon(acks, [[8]]),
    }
    verdict = Verdict(reckonings, {})
    assert not verdict.is_good
    assert verdict.rows()["read back by Spark"].startswith("1; lost 1, the first is 7, dup")
