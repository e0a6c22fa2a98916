import pytest

from kraftctl.topic_commands import pairs
from kraftlog.errors import ConfigError
from tests.kraftctl.conftest import Run

pytestmark = pytest.mark.slow


def test_a_topic_lives(kraftctl: Run) -> None:
    # R22
    made = kraftctl("topic", "create", "life", "-p", "3", "-c", "retention.ms=1h", "-o", "json")
    assert made.data == [{"name": "life", "partitions": 3, "replication_factor": 2}]
    assert kraftctl("topic", "create", "life").code == 6
    assert kraftctl("topic", "create", "life", "--if-not-exists").code == 0
    assert "life" in kraftctl("topic", "ls").out
    described = kraftctl("topic", "describe", "life", "-o", "json")
    assert described.pick(0, "configs") == {"retention.ms": "1h"}
    assert described.pick(0, "partitions", 2, "partition") == 2
    assert kraftctl("topic", "add-partitions", "life", "5").code == 0
    assert kraftctl("topic", "alter", "life", "--unset", "retention.ms").code == 0
    assert "all configs at their defaults" in kraftctl("topic", "describe", "life").out
    refused = kraftctl("topic", "delete", "life")
    assert (refused.code, "add --yes" in refused.err) == (7, True)
    assert kraftctl("topic", "delete", "life", "-y").code == 0
    assert kraftctl("topic", "describe", "life").code == 5


def test_a_dry_run_creates_nothing(kraftctl: Run) -> None:
    assert "would be created" in kraftctl("topic", "create", "ghost", "--dry-run").out
    assert kraftctl("topic", "describe", "ghost").code == 5


def test_some_of_many_may_fail(kraftctl: Run, topic: str) -> None:
    ran = kraftctl("topic", "create", topic, "quite-new", "bad name")
    assert ran.code == 6
    assert "quite-new created" in ran.out
    assert "bad name" in ran.err


def test_bad_numbers_are_refused(kraftctl: Run) -> None:
    assert kraftctl("topic", "create", "x", "-r", "9").code == 2
    assert kraftctl("topic", "create", "x", "-p", "0").code == 2
    assert kraftctl("topic", "create", "x", "-c", "retention").code == 2
    assert kraftctl("topic", "alter", "x").code == 2


def test_offsets_and_trimming(kraftctl: Run, topic: str) -> None:
    kraftctl("produce", topic, "--partition", "1", stdin="a\nb\nc\n")
    assert kraftctl("topic", "offsets", topic, "-o", "json").data == [
        {"partition": 0, "start": 0, "end": 0},
        {"partition": 1, "start": 0, "end": 3},
    ]
    assert kraftctl("topic", "trim", topic, "--before", "2").code == 7
    assert kraftctl("topic", "trim", topic, "--before", "soon", "-y").code == 2
    trimmed = kraftctl("topic", "trim", topic, "--before", "2", "--partition", "1", "-y")
    assert trimmed.code == 0
    assert kraftctl("topic", "offsets", topic, "--at", "start", "-o", "json").data == [
        {"partition": 0, "offset": 0},
        {"partition": 1, "offset": 2},
    ]


def test_offsets_are_asked_and_records_deleted_by_the_one_grammar(
    kraftctl: Run, topic: str
) -> None:
    for partition, lines in (("0", "a\nb\nc\nd\n"), ("1", "e\nf\n")):
        kraftctl("produce", topic, "--partition", partition, stdin=lines)
    asked = kraftctl("topic", "offsets", topic, "--at", "@-1h:@now", "-o", "json")
    assert asked.data == [
        {"partition": 0, "start": 0, "end": 4},
        {"partition": 1, "start": 0, "end": 2},
    ]
    asked = kraftctl("topic", "offsets", topic, "--at", "0=-1,1=+1:end", "-o", "json")
    assert asked.data == [
        {"partition": 0, "offset": 3},
        {"partition": 1, "start": 1, "end": 2},
    ]
    assert "PARTITION  OFFSET" in kraftctl("topic", "offsets", topic, "--at", "end").out
    trimmed = kraftctl("topic", "trim", topic, "--before", "0=-1,1=@now", "-y", "-o", "json")
    assert trimmed.data == [{"partition": 0, "start": 3}, {"partition": 1, "start": 2}]


@pytest.mark.parametrize("spec", ["soon", "5:3", "0=1,0=2", "9=1", "1=x"])
def test_places_that_make_no_sense_are_refused(kraftctl: Run, topic: str, spec: str) -> None:
    for arguments in (("offsets", topic, "--at", spec), ("trim", topic, "-y", "--before", spec)):
        ran = kraftctl("topic", *arguments)
        assert (ran.code, ran.err.count("error: ")) == (2, 1), ran
    assert "is a range" in kraftctl("topic", "trim", topic, "-y", "--before", "3:5").err


def test_pairs_have_an_equals_sign() -> None:
    assert pairs(["a=b", "c=d=e", "f="], "-c") == {"a": "b", "c": "d=e", "f": ""}
    with pytest.raises(ConfigError, match="-c a"):
        pairs(["a"], "-c")
