"""Finding a partition, or why it is not here."""

from pathlib import Path

import pytest

from brokers.cluster import Assignment, PartitionId
from brokers.partition_table import Damaged, NoCluster, PartitionTable
from brokers.refusals import Refused
from kraftlog.errors import ErrorCode, LogDamaged
from kraftlog.types import TopicPartition
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.brokers.controller import Metadata

ELSEWHERE = PartitionId(b"e" * 16, 0)


@pytest.fixture
def table() -> PartitionTable:
    table = PartitionTable(1)
    assignment = Assignment(ELSEWHERE, "e", 2, 3, 4, (2, 3), (2, 3))
    table.view = Metadata(assignments={ELSEWHERE: assignment})
    return table


def code_of(table: PartitionTable, partition: PartitionId) -> int:
    with pytest.raises(Refused) as refused:
        table.find(partition)
    return refused.value.error.code


def test_one_of_other_brokers_comes_with_a_hint(table: PartitionTable) -> None:
    with pytest.raises(Refused) as refused:
        table.find(ELSEWHERE)
    assert refused.value.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.value.leader == (2, 3)


def test_what_nobody_knows_is_unknown(table: PartitionTable) -> None:
    assert code_of(table, PartitionId(b"?" * 16, 0)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert (
        code_of(table, PartitionId(ELSEWHERE.topic_id, 7)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_damaged_log_is_a_storage_error(table: PartitionTable) -> None:
    table.damaged[ELSEWHERE] = Damaged(TopicPartition("e", 0), LogDamaged("bit rot"))
    assert code_of(table, ELSEWHERE) == ErrorCode.KAFKA_STORAGE_ERROR


def test_before_any_metadata_nothing_is_known() -> None:
    nothing = NoCluster()
    assert nothing.broker(1) is None
    assert nothing.assignment(ELSEWHERE) is None
    assert nothing.topic_settings("t").min_insync_replicas == 1
    assert code_of(PartitionTable(1), ELSEWHERE) == ErrorCode.UNKNOWN_TOPIC_ID


@async_test
async def test_what_is_here_is_found(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        table = cluster.brokers[1].manager.table
        assert str(table.find(topic).name) == "t-0"
        assert len(table) == len(list(table)) == 1
