from pathlib import Path

from chaos.checkers.files import judge_files
from quorum.store import LOG_DIRECTORY
from tests.chaos.checkers.directories import (
    BATCHES,
    REMOVED,
    batch,
    metadata_batch,
    no_ops,
    nodes,
    same_everywhere,
    write_metadata,
    write_replica,
)
from tests.chaos.checkers.scripts import Script, named

RECORDS = [batch(0, b"a"), batch(1, b"b")]


def a_cluster(root: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Three controllers; two brokers, each with a log and the metadata."""
    controllers = same_everywhere(root, ("c1", "c2", "c3"), BATCHES)
    for name in ("b1", "b2"):
        write_replica(root, name, RECORDS, 2)
        write_metadata(root, name, BATCHES[:2])
    return nodes(*controllers), nodes(root / "b1", root / "b2")


def test_a_cluster_that_is_in_order(tmp_path: Path) -> None:
    script = Script()
    script.create("orders", 2)
    script.delete("orders", 4)
    assert judge_files(*a_cluster(tmp_path), history=script.history) == []
    assert judge_files(*a_cluster(tmp_path)) == []


def test_clients_were_told_what_the_log_does_not_have(tmp_path: Path) -> None:
    script = Script()
    script.create("orders", 2)
    script.create("bills", 4)
    found = judge_files(*a_cluster(tmp_path), history=script.history)
    assert "M1" in named(found)
    assert any(finding.key == "bills" for finding in found)


def test_what_was_acknowledged_must_be_on_a_majority(tmp_path: Path) -> None:
    script = Script()
    script.create("bills", 9)
    assert "Q6" in named(judge_files(*a_cluster(tmp_path), history=script.history))


def test_the_logs_of_controllers_observers_and_partitions_are_all_read(tmp_path: Path) -> None:
    controllers, brokers = a_cluster(tmp_path)
    for path in (
        controllers["c2"] / LOG_DIRECTORY,
        brokers["b1"] / LOG_DIRECTORY,
        brokers["b2"] / "orders-0",
    ):
        segment = next(path.glob("*.log"))
        segment.write_bytes(segment.read_bytes() + bytes(100))
    found = judge_files(controllers, brokers)
    assert [(str(each.anomaly), each.key) for each in found] == [
        ("P10", "c2 __cluster_metadata-0"),
        ("P10", "b1 __cluster_metadata-0"),
        ("P10", "b2 orders-0"),
    ]


def test_the_newest_log_is_the_one_an_election_would_choose(tmp_path: Path) -> None:
    """One that is longer, and of an older epoch, says nothing about what became of topics."""
    script = Script()
    script.create("orders", 2)
    script.delete("orders", 4)
    newer = [*BATCHES[:2], metadata_batch(3, REMOVED, epoch=2)]
    controllers = nodes(
        write_metadata(tmp_path, "c1", [*BATCHES[:2], *no_ops(3, 9)]),
        write_metadata(tmp_path, "c2", newer, epoch=2),
        write_metadata(tmp_path, "c3", newer, epoch=2),
    )
    assert judge_files(controllers, {}, history=script.history) == []


def test_nothing_at_all_is_judged_as_nothing(tmp_path: Path) -> None:
    assert judge_files({}, {}) == []
    assert judge_files({}, {"b1": tmp_path / "nothing"}) == []
