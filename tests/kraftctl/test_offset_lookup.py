"""Offsets as commands look them up; `consume` and `topic` show what they make of it."""

import pytest

from kraftctl.offset_lookup import check_starts, ends_of, locate
from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster
from kraftlog.offsets import Offset, OffsetRange
from kraftlog.types import TopicPartition
from tests.kraftctl.conftest import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def place(kraftctl: Run, topic: str) -> TopicPartition:
    """A partition with the offsets 2 to 4."""
    kraftctl("produce", topic, "--partition", "0", stdin="a\nb\nc\nd\ne\n")
    kraftctl("topic", "trim", topic, "--before", "0=2", "-y")
    return TopicPartition(topic, 0)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("start", 2), ("end", 5), ("4", 4), ("+1", 3), ("-1", 4), ("-9", 2), ("@-1h", 2), ("@now", 5)],
)
def test_a_place_is_an_offset(
    cluster: LocalCluster, place: TopicPartition, text: str, offset: int
) -> None:
    with cluster.admin() as admin:
        assert locate(admin, {place: Offset.parse(text)}) == {place: offset}
        assert locate(admin, {}) == {}


def test_what_ends(cluster: LocalCluster, place: TopicPartition) -> None:
    other = TopicPartition(place.topic, 1)
    ranges = {place: OffsetRange.parse(":9"), other: OffsetRange.parse("start")}
    with cluster.admin() as admin:
        assert ends_of(admin, ranges, exit_at_end=False) == {place: 9}
        assert ends_of(admin, ranges, exit_at_end=True) == {place: 5, other: 0}


def test_numbers_that_are_no_offsets(cluster: LocalCluster, place: TopicPartition) -> None:
    def check(text: str) -> list[str]:
        with cluster.admin() as admin:
            return check_starts(admin, {place: OffsetRange.parse(text)})

    assert check("end") == check("2") == check("5") == []
    assert check("1") == [f"{place} begins at 2: what was before is deleted"]
    with pytest.raises(ConfigError, match="ends at 5: there is no offset 6"):
        check("6")
