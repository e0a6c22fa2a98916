from pathlib import Path

from chaos.checkers.partition_files import judge_replicas
from storage.log_dir import HIGH_WATERMARKS_FILE
from tests.chaos.checkers.directories import batch, flipped, nodes, write_replica
from tests.chaos.checkers.scripts import named

RECORDS = [batch(offset, b"%d" % offset) for offset in range(4)]


def test_replicas_that_agree_below_their_high_watermarks(tmp_path: Path) -> None:
    ahead = [*RECORDS, batch(4, b"not acked", epoch=1)]
    other = [*RECORDS, batch(4, b"something else", epoch=2)]
    directories = nodes(
        write_replica(tmp_path, "b1", ahead, 4),
        write_replica(tmp_path, "b2", other, 4),
        write_replica(tmp_path, "b3", RECORDS[:3], 3),
    )
    assert judge_replicas(directories) == []


def test_replicas_that_hold_different_records(tmp_path: Path) -> None:
    other = [*RECORDS[:2], batch(2, b"x"), RECORDS[3]]
    one, two = write_replica(tmp_path, "b1", RECORDS, 4), write_replica(tmp_path, "b2", other, 3)
    found = judge_replicas(nodes(one, two))
    assert named(found) == ["P3"]
    assert (found[0].key, found[0].offsets) == ("orders-0", (2, 2))


def test_a_replica_that_ends_below_its_own_high_watermark(tmp_path: Path) -> None:
    one, two = (
        write_replica(tmp_path, "b1", RECORDS, 4),
        write_replica(tmp_path, "b2", RECORDS[:2], 4),
    )
    found = judge_replicas(nodes(one, two))
    assert named(found) == ["P3"]
    assert "b2 ends at 2" in found[0].words


def test_a_log_that_is_gone_is_still_known_by_its_high_watermark(tmp_path: Path) -> None:
    one, two = write_replica(tmp_path, "b1", RECORDS, 4), write_replica(tmp_path, "b2", RECORDS, 4)
    for each in (two / "orders-0").iterdir():
        each.unlink()
    (two / "orders-0").rmdir()
    found = judge_replicas(nodes(one, two))
    assert named(found) == ["P3"]
    assert "b2 ends at 0" in found[0].words


def test_a_damaged_log_is_named_with_its_node(tmp_path: Path) -> None:
    directories = nodes(write_replica(tmp_path, "b1", [RECORDS[0], flipped(RECORDS[1])], 2))
    found = judge_replicas(directories)
    assert named(found) == ["P10"]
    assert found[0].key == "b1 orders-0"


def test_the_offsets_of_a_node_may_make_no_sense(tmp_path: Path) -> None:
    directory = write_replica(tmp_path, "b1", RECORDS, 4)
    (directory / HIGH_WATERMARKS_FILE).write_text("what?\n")
    assert named(judge_replicas(nodes(directory))) == ["P3"]


def test_a_compacted_topic_has_gaps_and_each_replica_its_own(tmp_path: Path) -> None:
    directories = nodes(
        write_replica(tmp_path, "b1", [RECORDS[0], RECORDS[3]], 4),
        write_replica(tmp_path, "b2", [RECORDS[1], RECORDS[3]], 4),
    )
    assert judge_replicas(directories, compacted=["orders"]) == []
    assert named(judge_replicas(directories)).count("P7") == 2


def test_a_node_without_a_directory_has_nothing_to_judge(tmp_path: Path) -> None:
    assert judge_replicas({"b1": tmp_path / "nothing"}) == []
