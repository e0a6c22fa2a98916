from pathlib import Path

import pytest

from chaos.checkers.logs import LogFiles
from chaos.checkers.metadata import LoggedChange
from chaos.checkers.metadata_files import Replayed, judge_images, replay_log
from chaos.checkers.quorum_files import read_metadata_logs
from metadata_log.image import EMPTY, Image
from metadata_log.records import (
    Broker,
    NoOp,
    PartitionChange,
    Record,
    RegisterBroker,
)
from metadata_log.replay import replay_all
from tests.chaos.checkers.directories import (
    BATCHES,
    CREATED,
    ORPHAN,
    OTHER_ID,
    TOPIC_ID,
    metadata_batch,
    no_ops,
    nodes,
    topic_records,
    write_image,
    write_metadata,
)
from tests.chaos.checkers.scripts import named


def broker(epoch: int) -> RegisterBroker:
    """One more registration of broker 1."""
    return RegisterBroker(
        Broker(id=1, incarnation_id=TOPIC_ID, epoch=epoch, listeners=(), log_dirs=(OTHER_ID,))
    )


def read(*directories: Path) -> list[LogFiles]:
    return read_metadata_logs(nodes(*directories))


def replayed(root: Path, *batches: bytes) -> Replayed:
    (log,) = read(write_metadata(root, "c1", batches))
    return replay_log(log)


def image_of(*records: Record) -> Image:
    return replay_all(EMPTY, records, 0)


def test_a_log_tells_which_topics_came_and_went(tmp_path: Path) -> None:
    found = replayed(tmp_path, *BATCHES)
    assert found.findings == []
    assert found.changes == [LoggedChange("orders", True, 2), LoggedChange("orders", False, 4)]
    assert found.image.end_offset == 4


def test_replay_begins_with_the_snapshot_from_which_the_log_goes_on(tmp_path: Path) -> None:
    node = write_metadata(tmp_path, "c1", BATCHES[2:])
    write_image(node, image_of(*CREATED, NoOp()), 3)
    (log,) = read(node)
    found = replay_log(log)
    assert (found.start_offset, found.findings) == (3, [])
    assert found.changes == [LoggedChange("orders", False, 4)]


def test_without_a_snapshot_there_is_nothing_to_replay(tmp_path: Path) -> None:
    found = replayed(tmp_path, *no_ops(5, 8))
    assert (found.image, found.findings) == (EMPTY, [])


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        (PartitionChange(TOPIC_ID, 0, leader=1, isr=()), "M9"),
        (PartitionChange(TOPIC_ID, 0, leader=1, isr=(1,), elr=(), last_known_elr=()), "M7"),
        (PartitionChange(OTHER_ID, 0, leader=1), "M5"),
        (broker(0), "M6"),
    ],
    ids=["led by nobody in sync", "in sync and not registered", "unknown topic", "epoch falls"],
)
def test_an_image_that_breaks_a_rule_is_found(tmp_path: Path, record: Record, rule: str) -> None:
    batches = [
        metadata_batch(0, *CREATED),
        metadata_batch(2, broker(2)),
        metadata_batch(3, record),
    ]
    found = replayed(tmp_path, *batches).findings
    assert rule in named(found)
    assert all(finding.key == "c1" for finding in found)


def test_a_snapshot_that_is_not_the_replay_of_the_log(tmp_path: Path) -> None:
    node = write_metadata(tmp_path, "c1", BATCHES)
    write_image(node, image_of(*CREATED, NoOp()), 3)
    (log,) = read(node)
    assert replay_log(log).findings == []
    write_image(node, image_of(*topic_records("wrong", TOPIC_ID, ORPHAN)), 2)
    found = replay_log(log).findings
    assert named(found) == ["Q11"]
    assert "the snapshot at 2" in found[0].words


def test_images_are_the_same_where_all_have_come_to(tmp_path: Path) -> None:
    one = write_metadata(tmp_path, "c1", BATCHES)
    two = write_metadata(tmp_path, "b1", BATCHES[:2])
    empty = write_metadata(tmp_path, "b2", [])
    found, replays = judge_images(read(one, two, empty))
    assert found == []
    assert [each.log.name for each in replays] == ["b1", "c1"]


def test_images_that_differ_at_one_offset(tmp_path: Path) -> None:
    other = metadata_batch(0, *topic_records("bills", TOPIC_ID, ORPHAN))
    one = write_metadata(tmp_path, "c1", BATCHES)
    two = write_metadata(tmp_path, "c2", [other, *BATCHES[1:]])
    found, _ = judge_images(read(one, two), committed=3)
    assert named(found) == ["M5"]
    assert (found[0].key, found[0].offsets) == ("c1 c2", (3,))


def test_what_was_never_committed_may_differ(tmp_path: Path) -> None:
    other = metadata_batch(2, NoOp(), NoOp(), epoch=2)
    one = write_metadata(tmp_path, "c1", BATCHES)
    two = write_metadata(tmp_path, "c2", [BATCHES[0], other], epoch=2)
    assert judge_images(read(one, two))[0] == []
