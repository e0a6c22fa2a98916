from collections.abc import Mapping
from typing import Literal, cast

import pytest

from kraftctl.verify_command import _compare, _summary
from kraftlog.admin import Admin
from kraftlog.admin_types import (
    ConfigEntry,
    ConfigResource,
    PartitionDescription,
    ReplicaDescription,
)
from kraftlog.errors import RetriableError
from kraftlog.results import Results
from kraftlog.types import TopicPartition, Uuid
from tests.kraftctl.conftest import Run
from tests.kraftctl.test_schema_command import check

T0 = TopicPartition("t", 0)
ID = Uuid(b"t" * 16)


class Replicas:
    """An Admin of a partition whose replicas have records `starts` to `ends`, but for those that
    are `bad`; what a broker has drops with each look in `shrinking`.
    """

    def __init__(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> None:
        self.starts, self.ends = dict(starts), ends
        self.bad: set[int] = set()
        self.gone: set[int] = set()
        self.shrinking: set[int] = set()
        self.policy = "delete"

    def describe_configs(
        self, resources: "map[ConfigResource]"
    ) -> Results[ConfigResource, Mapping[str, ConfigEntry]]:
        entry = ConfigEntry(name="cleanup.policy", value=self.policy, source="topic")
        return Results({each: {"cleanup.policy": entry} for each in resources})

    def describe_replicas(
        self,
        broker: int,
        _topics: list[str],
        *,
        digest: Mapping[TopicPartition, tuple[int, int]] | Literal[False] = False,
    ) -> list[ReplicaDescription]:
        if broker in self.gone:
            raise RetriableError("it is gone")
        start, end = self.starts[broker], self.ends[broker]
        crc = None
        if digest and digest[T0][0] >= start and digest[T0][1] <= end:
            crc = hash(digest[T0]) % 1000 + (broker in self.bad)
        if digest is False and broker in self.shrinking:
            self.shrinking.discard(broker)
            self.starts[broker] += 5
        return [ReplicaDescription("t", ID, 0, "d", 1, start, end, end, 0, False, crc)]


def compared(replicas: Replicas) -> tuple[str, int, int]:
    members = tuple(replicas.starts)
    partition = PartitionDescription(0, 1, 0, 0, members, members)
    (found,) = _compare(cast("Admin", replicas), {T0: partition})
    return found.word, found.start, found.end


def test_replicas_agree_on_what_they_have_in_common() -> None:
    assert compared(Replicas({1: 0, 2: 3}, {1: 12, 2: 10})) == ("agree", 3, 10)
    assert compared(Replicas({1: 8, 2: 0}, {1: 9, 2: 7}))[0] == "unknown", "they have nothing"


def test_one_that_differs() -> None:
    replicas = Replicas({1: 0, 2: 0, 3: 0}, {1: 9, 2: 9, 3: 9})
    replicas.bad = {2}
    replicas.gone = {3}
    assert compared(replicas)[0] == "differ"


def test_one_that_does_not_answer() -> None:
    replicas = Replicas({1: 0, 2: 0}, {1: 9, 2: 9})
    replicas.gone = {2}
    assert compared(replicas)[0] == "unknown"


def test_records_that_go_meanwhile() -> None:
    replicas = Replicas({1: 0, 2: 0}, {1: 9, 2: 9})
    replicas.shrinking = {1}
    assert compared(replicas) == ("agree", 5, 9)


def test_compacted_ones_are_left_out() -> None:
    replicas = Replicas({1: 0, 2: 0}, {1: 9, 2: 9})
    replicas.policy, replicas.bad = "compact,delete", {1}
    assert compared(replicas)[0] == "compacted"


def test_summaries() -> None:
    assert _summary(["agree", "compacted"]) == "all replicas agree; left out as compacted: 1"
    assert _summary(["agree", "unknown"]) == "not compared: 1 partitions of 2"
    assert _summary(["differ", "unknown"]) == "THE REPLICAS DIFFER: of 1 partitions in 2"


@pytest.mark.slow
def test_a_partition_a_topic_and_all(kraftctl: Run, topic: str) -> None:
    kraftctl("produce", topic, "--partition", "0", stdin="a\nb\n")
    for names in ((f"{topic}:0",), (topic,), ()):
        verified = kraftctl("partition", "verify", *names, "-o", "json")
        assert verified.code == 0
        check(verified, "partition verify")
        assert verified.pick("same") is True
    assert "0:2" in kraftctl("partition", "verify", topic).out
    for nowhere in (f"{topic}:9", "nowhere"):
        assert kraftctl("partition", "verify", nowhere).code == 5
