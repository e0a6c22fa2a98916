"""What the watcher makes of answers; tests/chaos/live/test_stage.py has it ask real nodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.history import HistoryWriter, read_history
from chaos.live.watch import Watcher
from kraftlog.rpc import broker_pb2, raft_pb2


@pytest.fixture
def history(tmp_path: Path) -> Iterator[HistoryWriter]:
    with HistoryWriter(tmp_path / "history.jsonl") as opened:
        yield opened


@pytest.fixture
def watcher(history: HistoryWriter) -> Watcher:
    return Watcher({}, {}, lambda number: f"b{number}", history)


def leader(epoch: int, end: int, high_watermark: int) -> raft_pb2.DescribeQuorumReply:
    reply = raft_pb2.DescribeQuorumReply(
        role="leader", end_offset=end, high_watermark=high_watermark
    )
    reply.header.epoch = epoch
    return reply


def metadata(offset: int, leader_id: int, epoch: int, *up: int) -> broker_pb2.MetadataReply:
    partition = broker_pb2.PartitionMetadata(
        partition=0, leader_id=leader_id, leader_epoch=epoch, isr=up
    )
    return broker_pb2.MetadataReply(
        offset=offset,
        brokers=[broker_pb2.BrokerNode(node_id=each) for each in up],
        topics=[broker_pb2.TopicMetadata(name="orders", partitions=[partition])],
    )


def test_a_leader_counts_once_it_has_committed(watcher: Watcher) -> None:
    watcher._saw_leader("c1", leader(4, end=10, high_watermark=10))
    watcher._saw_leader("c2", leader(5, end=12, high_watermark=10))
    assert watcher.controller_after(4) is None
    watcher._saw_leader("c2", leader(5, end=13, high_watermark=12))
    reign = watcher.controller_after(4)
    assert reign is not None
    assert (reign.leader, reign.epoch) == ("c2", 5)
    assert [each.epoch for each in watcher.reigns] == [4, 5]
    assert watcher.last_led("c1", 4) > 0
    assert watcher.last_led("c2", 4) == 0
    assert not watcher.led_after("c1", 4, watcher.last_led("c1", 4))


def test_two_leaders_of_one_epoch_are_noticed(watcher: Watcher) -> None:
    watcher._saw_leader("c1", leader(4, 10, 10))
    watcher._saw_leader("c3", leader(4, 10, 10))
    assert watcher.doubles == ["c3 and c1 both lead epoch 4"]


def test_older_metadata_changes_nothing(watcher: Watcher, history: HistoryWriter) -> None:
    watcher._saw_metadata(metadata(7, 1, 0, 1, 2))
    watcher._saw_metadata(metadata(9, 2, 1, 2))
    watcher._saw_metadata(metadata(8, 1, 0, 1, 2))
    assert watcher.leader("orders", 0) == 2
    assert watcher.leader("orders", 5) == -1
    assert watcher.fenced_at(1, 0.0) is not None
    assert watcher.fenced_at(2, 0.0) is None
    assert watcher.up() == {2}
    (now,) = watcher.partitions("orders").values()
    assert now.isr == (2,)
    watcher._saw_metadata(metadata(10, 2, 1, 1, 2))
    events = [each.what for each in read_history(history.path).events]
    assert events == ["brokers", "leader", "brokers", "leader", "brokers", "isr"]
