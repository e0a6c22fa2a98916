"""Bugs that others had, by their names. What is not about decisions and images is tested where it
belongs: sessions and queues with the controller, strays and catching up with the broker.
"""

from dataclasses import replace

import pytest

from kraftlog.errors import IneligibleReplica, NotController
from metadata_log.codec import UnknownRecord, decode_record
from metadata_log.decide.fencing import begin_shutdown
from metadata_log.decide.heartbeats import Heartbeat, heartbeat
from metadata_log.decide.partitions import AlterPartitions, IsrMember, alter_partitions
from metadata_log.decide.reassign import Reassignment, reassign
from metadata_log.decide.topics import CreateTopics, NewTopic, create_topics
from metadata_log.delta import diff
from metadata_log.image import EMPTY
from metadata_log.records import NO_LEADER, PartitionChange, Recovery, RemoveTopic
from metadata_log.replay import UnappliableRecord, load, replay, replay_all
from metadata_log.snapshot import digest, write_records
from tests.metadata_log.clusters import Cluster, Dice, partition, uuid


def test_kafka_14618_a_snapshot_ends_where_the_log_goes_on() -> None:  # 18
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2), (2, 1))
    cluster.fence(1)
    records = [each.record for each in cluster.log]
    for end in range(len(records) + 1):
        before = replay_all(EMPTY, records[:end], 0)
        loaded = load(write_records(before), end)
        assert loaded.end_offset == end
        after = replay_all(loaded, records[end:], end)
        assert digest(after) == digest(cluster.image)


def test_kafka_14894_a_reload_forgets_what_was_deleted() -> None:  # 21
    cluster = Cluster([1])
    topic_id = cluster.create("t", (1,))
    old = cluster.image
    new = replay(old, RemoveTopic(topic_id), old.end_offset)
    delta = diff(old, load(write_records(new), new.end_offset))
    assert list(delta.removed_topics) == [topic_id]


def test_kafka_14275_a_record_that_cannot_be_applied_is_never_skipped() -> None:  # 24
    cluster = Cluster([1])
    bad = PartitionChange(uuid("nowhere", 1), 0, leader=1)
    with pytest.raises(UnappliableRecord):
        replay(cluster.image, bad, cluster.image.end_offset)
    with pytest.raises(UnknownRecord):
        decode_record(b"\x08\x07")


def test_kafka_18063_nothing_is_left_of_deleted_topics() -> None:  # 25
    cluster = Cluster([1, 2])
    empty = digest(cluster.image)
    for number in range(5):
        topic_id = cluster.create(f"t{number}", (1, 2), configs={"retention.ms": "5"})
        end = cluster.image.end_offset
        cluster.image = replay(cluster.image, RemoveTopic(topic_id), end)
    assert digest(cluster.image) == empty
    assert len(cluster.image.index) == 0


def test_kafka_13173_two_sessions_end_at_once() -> None:  # 26
    """The second decision is made on the image after the first."""
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2, 3), (2, 1, 3))
    cluster.fence(1)
    cluster.fence(2)
    for number in (0, 1):
        assert cluster.state("t", number).isr == (3,)


def test_kafka_14292_a_shutdown_ends() -> None:  # 29
    """The offset that others have to reach is that of the move, not of the last heartbeat."""
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    cluster.decided(begin_shutdown(cluster.image, 1))
    moved = cluster.image.end_offset
    request = Heartbeat(
        broker_id=1,
        broker_epoch=cluster.image.brokers[1].epoch,
        applied_offset=moved,
        want_shut_down=True,
    )
    for _ in range(3):
        cluster.create(f"more{cluster.image.end_offset}", (2,))
        waiting = heartbeat(cluster.image, request, shutdown_offset=moved, active_offset=moved - 1)
        assert waiting.records == ()
        assert not waiting.response.should_shut_down
    done = heartbeat(cluster.image, request, shutdown_offset=moved, active_offset=moved)
    assert done.response.should_shut_down


@pytest.mark.parametrize("how", ["fenced", "shutting down", "rebooted"])
def test_kafka_13916_and_14617_nobody_unfit_joins_an_isr(how: str) -> None:  # 31
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2, 3))
    cluster.alter("t", 1, 3)
    old = cluster.image.brokers[2].epoch
    match how:
        case "fenced":
            cluster.fence(2)
        case "shutting down":
            cluster.create("led", (2,))
            cluster.decided(begin_shutdown(cluster.image, 2))
        case _:
            cluster.fence(2)
            cluster.start(2)
    change = replace(cluster.isr_change("t", 1, 2, 3), isr=(IsrMember(1), IsrMember(2, old)))
    with pytest.raises(IneligibleReplica):
        cluster.altered(1, change)
    assert cluster.state("t").isr == (1, 3)


def test_kafka_14154_a_leader_that_is_ahead_is_not_fenced() -> None:  # 33
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    stale = cluster.image
    cluster.fence(1)
    cluster.unfence(1)
    newer = cluster.isr_change("t", 2, 1)
    request = AlterPartitions(2, stale.brokers[2].epoch, (newer,))
    (outcome,) = alter_partitions(stale, request).response
    assert isinstance(outcome.error, NotController)


def test_kafka_15495_an_empty_disk_does_not_win() -> None:  # 34
    """The sole member of the ISR dies and returns with nothing: nobody is cut down to it."""
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    cluster.alter("t", 1)
    cluster.fence(1)
    wiped = replace(cluster.registration(1), log_dirs=(uuid("new disk", 1),))
    cluster.registered(wiped)
    cluster.unfence(1)
    assert cluster.state("t").leader == NO_LEADER
    assert cluster.state("t").last_known_elr == (2, 1)


def test_kafka_18635_an_unclean_restart_is_known_by_its_epoch() -> None:  # 34
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
    cluster.alter("t", 1, 2)
    cluster.fence(2)
    assert cluster.state("t").elr == (2,)
    cluster.register(2, clean=True)
    assert cluster.state("t").elr == (2,)
    cluster.register(2)
    assert cluster.state("t").elr == ()


def test_kafka_19522_a_dead_last_leader_is_not_elected() -> None:  # 35
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    cluster.alter("t", 1)
    cluster.fence(1)
    cluster.register(1)
    assert cluster.state("t").last_known_elr == (1,)
    assert cluster.state("t").elr == ()
    cluster.fence(2)
    cluster.unfence(2)
    assert cluster.state("t").leader == NO_LEADER
    cluster.unfence(1)
    assert cluster.state("t").leader == 1
    assert cluster.state("t").recovery is Recovery.RECOVERING


def test_kafka_15665_a_reassignment_waits_for_all_of_its_target() -> None:  # 36
    cluster = Cluster([1, 2, 3, 4])
    cluster.create("t", (1, 2))
    cluster.decided(reassign(cluster.image, (Reassignment(partition("t"), (3, 4)),)))
    cluster.alter("t", 1, 2, 3)
    assert cluster.state("t").is_reassigning
    cluster.alter("t", 1, 3)
    assert cluster.state("t").replicas == (3, 4, 1, 2)


def test_kafka_13083_a_fenced_broker_is_in_no_first_isr() -> None:  # 37
    cluster = Cluster([1, 2, 3])
    cluster.fence(2)
    cluster.create("t", partitions=6, replication_factor=3)
    for number in range(6):
        state = cluster.state("t", number)
        assert 2 in state.replicas
        assert 2 not in state.isr
        assert state.leader != 2


def test_kafka_16757_registering_again_does_not_fence() -> None:  # 38
    cluster = Cluster([])
    request = cluster.registration(1)
    cluster.registered(request)
    cluster.unfence(1)
    cluster.create("t", (1,))
    cluster.registered(replace(request, rack="moved"), alive=True)
    assert not cluster.image.brokers[1].is_fenced
    assert cluster.state("t").leader == 1


def test_kafka_14457_what_is_pending_is_not_what_is_committed() -> None:  # 40
    """Images are immutable: the controller shows the committed one while it decides on another. Its
    metrics do so too: tests/quorum/test_metrics.py.
    """
    cluster = Cluster([1])
    committed = cluster.image
    request = CreateTopics((NewTopic(name="t", partitions=1),))
    decision = create_topics(committed, request, draw=Dice(1))
    pending = replay_all(
        committed, (each.record for each in decision.records), committed.end_offset
    )
    assert committed.topic("t") is None
    assert committed.partition_count == 0
    assert pending.partition_count == 1
