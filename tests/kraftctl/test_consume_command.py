import json
import subprocess
import sys

import pytest

from kraftlog.local import LocalCluster
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


@pytest.mark.parametrize(
    ("spec", "read"),
    [
        ("1:3", "0/1 0/2 1/1"),
        (":end", "0/0 0/1 0/2 0/3 1/0 1/1"),
        ("-1:end", "0/3 1/1"),
        ("+1:-1", "0/1 0/2"),
        ("@-1h:@now", "0/0 0/1 0/2 0/3 1/0 1/1"),
        ("0=2:end", "0/2 0/3"),
        ("0=3:end,1=:1", "0/3 1/0"),
        ("2:2", ""),
    ],
)
def test_a_range_ends_where_it_says(kraftctl: Run, topic: str, spec: str, read: str) -> None:
    kraftctl("produce", topic, "--partition", "0", stdin="a\nb\nc\nd\n")
    kraftctl("produce", topic, "--partition", "1", stdin="e\nf\n")
    # Numbers that are not there yet are waited for: but not to the end of the test.
    late = ("-e",) if spec == "1:3" else ()
    ran = kraftctl("consume", topic, "--from", spec, "-f", "%p/%o", *late)
    assert (ran.code, sorted(ran.out.split())) == (0, read.split()), ran


def test_an_end_that_is_a_number_is_waited_for(
    kraftctl: Run, cluster: LocalCluster, topic: str
) -> None:
    words = f"consume {topic} -b {cluster.bootstrap} --from 0=:3"
    command = [sys.executable, "-m", "kraftctl", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        kraftctl("produce", topic, "--partition", "0", stdin="a\nb\n")
        assert [reader.stdout.readline(), reader.stdout.readline()] == ["a\n", "b\n"]
        kraftctl("produce", topic, "--partition", "0", stdin="c\nd\n")
        assert reader.stdout.read() == "c\n"
        assert reader.wait() == 0


def test_what_is_deleted_already_is_said_and_what_cannot_be_there_is_refused(
    kraftctl: Run, topic: str
) -> None:
    kraftctl("produce", topic, "--partition", "0", stdin="a\nb\nc\n")
    kraftctl("topic", "trim", topic, "--before", "0=2", "-y")
    read = kraftctl("consume", topic, "--from", "0=0:end")
    assert (read.out, read.err) == (
        "c\n",
        f"warning: {topic}-0 begins at 2: what was before is deleted\n",
    )
    assert kraftctl("consume", topic, "--from", "0=0:end", "-o", "json").warnings
    refused = kraftctl("consume", topic, "--from", "0=9")
    assert refused.code == 2
    assert f"{topic}-0 ends at 3: there is no offset 9" in refused.err


def test_a_format_or_an_offset_that_makes_no_sense_is_refused(kraftctl: Run, topic: str) -> None:
    assert kraftctl("consume", topic, "-f", "%x").code == 2
    for spec in ("yesterday", "5:3", "0=1,0=2", "7=start", "1:2:3", ""):
        refused = kraftctl("consume", topic, "--from", spec)
        assert (refused.code, refused.err.count("error: ")) == (2, 1), refused
    endless = kraftctl("consume", topic, "--from", "0=5:9,1=5", "-o", "json")
    assert (endless.code, "there would be no end" in endless.out) == (2, True)
