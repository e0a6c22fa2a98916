from pathlib import Path

from chaos.drills.safety import judge_safety
from chaos.history import HistoryWriter, Json
from chaos.live.run_directory import RunDirectory


def directory_with(root: Path, *, reads: bool) -> RunDirectory:
    directory = RunDirectory.create(root, "baseline", 1)
    place: dict[str, Json] = {"topic": "orders", "partition": 0}
    with HistoryWriter(directory.history) as history:
        for value in (1, 2):
            sent = history.invoke("producer-0", "send", {**place, "value": value})
            history.ok(sent, {"offset": value - 1})
        records = [(0, 1), (1, 2)] if reads else [(1, 2)]
        read = history.invoke("final", "poll", place)
        history.ok(read, {**place, "records": records})
    return directory


def test_a_history_that_is_right(tmp_path: Path) -> None:
    found = judge_safety(directory_with(tmp_path, reads=True))
    assert found.anomalies == ()
    assert (found.counts["acked"], found.counts["read"], found.counts["lost"]) == (2, 2, 0)


def test_a_lost_record_is_found(tmp_path: Path) -> None:
    found = judge_safety(directory_with(tmp_path, reads=False))
    assert found.counts["lost"] == 1
    assert "orders-0" in found.anomalies[0]


def test_of_a_drill_that_broke_off_unseen_says_nothing_and_of_any_other_it_does(
    tmp_path: Path,
) -> None:
    directory = RunDirectory.create(tmp_path, "baseline", 1)
    place: dict[str, Json] = {"topic": "orders", "partition": 0}
    with HistoryWriter(directory.history) as history:
        sent = history.invoke("producer-0", "send", {**place, "value": 1})
        history.ok(sent, {"offset": 0})
    assert judge_safety(directory, ["it broke off"]).anomalies == ("it broke off",)
    (unseen,) = judge_safety(directory).anomalies
    assert unseen.startswith("unseen orders-0")
    with HistoryWriter(directory.history) as history:
        sent = history.invoke("producer-0", "send", {**place, "value": 1})
        history.ok(sent, {"offset": 0})
        history.event("phase", phase="final")
    assert len(judge_safety(directory, ["and more"]).anomalies) == 2


def test_what_the_drill_found_counts_and_nothing_tested_is_no_pass(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "baseline", 1)
    HistoryWriter(directory.history).close()
    found = judge_safety(directory, ["b1 leads nothing"])
    assert found.anomalies == (
        "b1 leads nothing",
        "nothing was acknowledged, so nothing was tested",
    )


def test_of_a_quorum_alone_its_changes_are_counted(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "kill-controller-leader", 1)
    with HistoryWriter(directory.history) as history:
        created = history.invoke("writer", "create_topic", {"topic": "a"})
        history.ok(created, {"offset": 1})
        read = history.invoke("final", "list_topics", {})
        history.ok(read, {"offset": 2, "topics": []})
    found = judge_safety(directory)
    assert (found.counts["acked"], found.counts["read"]) == (1, 1)
    assert found.counts["contradicted"] == len(found.anomalies) > 0
    assert 'create_topic {"topic": "a"}' in found.anomalies[0]  # the lost operation, by name
