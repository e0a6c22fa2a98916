import json

import pytest

from tests.kraftctl.conftest import Run

pytestmark = pytest.mark.slow


def test_records_are_read(kraftctl: Run, topic: str) -> None:
    # R41
    kraftctl("produce", topic, "-K", ",", "--partition", "0", stdin="a,1\nb,2\nc,3\n")
    read = kraftctl("consume", topic, "--from", "start", "-e", "-f", "%p %o %k=%v")
    assert read.out.splitlines() == ["0 0 a=1", "0 1 b=2", "0 2 c=3"]
    assert kraftctl("consume", topic, "--from", "start", "-n", "2").out == "1\n2\n"
    some = kraftctl("consume", topic, "--from", "-1", "--partition", "0", "-e", "-o", "jsonl")
    assert [json.loads(line)["value"] for line in some.out.splitlines()] == ["3"]


def test_a_format_or_an_offset_that_makes_no_sense_is_refused(kraftctl: Run, topic: str) -> None:
    assert kraftctl("consume", topic, "-f", "%x").code == 2
    assert kraftctl("consume", topic, "--from", "yesterday").code in (1, 2)
