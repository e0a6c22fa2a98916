import math
from pathlib import Path
from xml.etree import ElementTree as ET

from chaos.drills.result import JUNIT, in_words, junit_text, write_result
from chaos.live.run_directory import RESULTS
from tests.chaos.drills.results import COUNTS, result


def test_a_good_run_passes_in_words(tmp_path: Path) -> None:
    good = result(tmp_path)
    assert good.passed
    assert good.words.startswith("Passed: 10 acked, 10 read, 0 lost")


def test_a_missed_target_and_an_anomaly_fail_by_name(tmp_path: Path) -> None:
    bad = result(tmp_path, 3.0, anomalies=("lost orders-0: value 7",))
    assert bad.verdict == "FAIL"
    assert "lost orders-0: value 7" in bad.words
    assert "no ack for: 3 s = 2.00 x session, target 2.5 s" in bad.words
    assert in_words(bad.criteria[0]) in bad.words


def test_what_was_never_measured_is_said_to_be(tmp_path: Path) -> None:
    assert "no ack for: not measured, target 2.5 s" in result(tmp_path, math.nan).words


def test_the_files_of_a_result(tmp_path: Path) -> None:
    bad = result(tmp_path, 3.0, anomalies=("<lost> & gone",))
    write_result(bad)
    found = bad.directory.read(RESULTS)
    assert (found["drill"], found["seed"], found["verdict"]) == ("baseline", 1, "FAIL")
    assert found["anomalies"] == ["<lost> & gone"]
    assert found["counts"] == COUNTS
    suite = ET.fromstring((bad.directory.path / JUNIT).read_text())  # noqa: S314 - our own
    assert suite.get("failures") == "2"
    assert [case.get("name") for case in suite] == ["safety", "u_write"]
    assert suite[0][0].text == "<lost> & gone"


def test_a_good_run_has_no_failure_in_junit(tmp_path: Path) -> None:
    assert "<failure" not in junit_text(result(tmp_path))
