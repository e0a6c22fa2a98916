from pathlib import Path

from chaos.checkers.findings import Finding
from chaos.checkers.quorum_files import judge_quorum, read_metadata_logs, snapshots_of
from metadata_log.image import EMPTY
from quorum.election_file import ELECTION_FILE
from quorum.store import LOG_DIRECTORY
from tests.chaos.checkers.directories import (
    no_ops,
    nodes,
    same_everywhere,
    spoil_vote,
    write_image,
    write_metadata,
)
from tests.chaos.checkers.scripts import named

NAMES = ("c1", "c2", "c3")


def judge(*directories: Path, committed: int = 0) -> list[Finding]:
    return judge_quorum(read_metadata_logs(nodes(*directories)), committed=committed)


def test_logs_that_are_the_same_up_to_what_is_not_committed(tmp_path: Path) -> None:
    longer = write_metadata(tmp_path, "c1", [*no_ops(0, 4), *no_ops(4, 6, epoch=2)], epoch=2)
    other = write_metadata(tmp_path, "c2", [*no_ops(0, 4), *no_ops(4, 7, epoch=3)], epoch=3)
    short = write_metadata(tmp_path, "c3", no_ops(0, 4))
    assert judge(longer, other, short, committed=4) == []


def test_a_vote_that_is_older_than_the_log(tmp_path: Path) -> None:
    found = judge(write_metadata(tmp_path, "c1", no_ops(0, 2, epoch=5), epoch=4))
    assert named(found) == ["Q2"]
    assert "epoch 4" in found[0].words
    assert "epoch 5" in found[0].words


def test_a_vote_that_is_gone_or_makes_no_sense(tmp_path: Path) -> None:
    one, two = same_everywhere(tmp_path, NAMES[:2], no_ops(0, 2))
    (one / LOG_DIRECTORY / ELECTION_FILE).unlink()
    spoil_vote(two, {"leaderEpoch": "many"})
    assert named(judge(one, two)) == ["Q2", "Q2"]


def test_logs_that_agree_at_the_end_and_not_before(tmp_path: Path) -> None:
    other = [*no_ops(0, 1), *no_ops(1, 2, epoch=2), *no_ops(2, 4, epoch=3)]
    one = write_metadata(tmp_path, "c1", [*no_ops(0, 2), *no_ops(2, 4, epoch=3)], epoch=3)
    two = write_metadata(tmp_path, "c2", other, epoch=3)
    found = judge(one, two)
    assert named(found) == ["Q4"]
    assert found[0].key == "c1 c2"


def test_what_was_committed_is_on_no_majority(tmp_path: Path) -> None:
    (one,) = same_everywhere(tmp_path, ["c1"], no_ops(0, 5))
    two, three = same_everywhere(tmp_path, ["c2", "c3"], no_ops(0, 4))
    assert judge(one, two, three, committed=4) == []
    found = judge(one, two, three, committed=5)
    assert named(found) == ["Q6"]
    assert "c1 5, c2 4, c3 4" in found[0].words


def test_a_majority_is_long_enough_and_holds_different_things(tmp_path: Path) -> None:
    one = write_metadata(tmp_path, "c1", no_ops(0, 4))
    two = write_metadata(tmp_path, "c2", [*no_ops(0, 2), *no_ops(2, 4, epoch=2)], epoch=2)
    three = write_metadata(tmp_path, "c3", no_ops(0, 2))
    assert named(judge(one, two, three, committed=4)) == ["Q6"]


def test_a_log_that_begins_behind_no_snapshot(tmp_path: Path) -> None:
    node = write_metadata(tmp_path, "c1", no_ops(5, 8))
    assert named(judge(node)) == ["Q11"]
    write_image(node, EMPTY, 6)
    (log,) = read_metadata_logs(nodes(node))
    assert [each.end_offset for each in snapshots_of(log)] == [6]
    assert judge(node) == []


def test_a_damaged_snapshot(tmp_path: Path) -> None:
    node = write_metadata(tmp_path, "c1", no_ops(0, 8))
    path = write_image(node, EMPTY, 6)
    path.write_bytes(path.read_bytes()[:-1])
    assert named(judge(node)) == ["Q11"]


def test_the_first_voters_are_no_snapshot_of_anything(tmp_path: Path) -> None:
    node = write_metadata(tmp_path, "c1", no_ops(0, 1))
    write_image(node, EMPTY, 0, epoch=0)
    (log,) = read_metadata_logs(nodes(node))
    assert snapshots_of(log) == []
    assert judge(node) == []
