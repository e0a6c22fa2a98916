import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftlog.errors import ConfigError, KraftError, NetworkError, UnknownTopicOrPartition
from kraftlog.local import LocalCluster
from kraftlog.local.layout import Layout, Member
from kraftlog.records import Record
from spark_connector.examples import alerts, clickstream, enrich, pipeline

MAINS = [clickstream.main, enrich.main, alerts.main]


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user without a cluster."""
    monkeypatch.delenv("KRAFTCTL_BOOTSTRAP", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("main", MAINS)
def test_without_a_cluster_there_is_one_line(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == pipeline.USAGE
    error = capsys.readouterr().err
    assert error == (
        "error: there is no local cluster (start one: kraftctl up -d, or say -b HOST:PORT)\n"
    )


@pytest.mark.usefixtures("nobody")
def test_a_file_in_the_place_of_the_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert clickstream.main(["-b", "localhost:1", "--out", str(file)]) == pipeline.USAGE
    assert capsys.readouterr().err == f"error: --out {file} is a file (name a directory)\n"


@pytest.mark.parametrize("main", MAINS)
def test_a_number_that_is_none(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--events", "many"])
    assert ended.value.code == pipeline.USAGE
    assert "'many' is not 0, 1, 2, ..." in capsys.readouterr().err


def test_brokers_that_do_not_answer_are_noticed_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "ANSWER", "200ms")
    assert enrich.main(["-b", "127.0.0.1:1", "--out", str(tmp_path)]) == pipeline.UNREACHABLE
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_the_environment_names_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRAFTCTL_BOOTSTRAP", "b1:1,b2:2")
    assert pipeline.local_bootstrap() == "b1:1,b2:2"


@pytest.mark.usefixtures("nobody")
def test_the_current_local_cluster_is_meant(tmp_path: Path) -> None:
    directory = tmp_path / "kraftlog" / "clusters" / "dev"
    directory.mkdir(parents=True)
    members = [Member("c1", "controller", 101, 7), Member("b1", "broker", 1, 8)]
    Layout(str(directory), members, {}, "fast").save()
    (tmp_path / "kraftlog" / "current").write_text("dev\n")
    assert pipeline.local_bootstrap() == "127.0.0.1:8"


def test_the_gist_of_a_story_of_spark_is_our_own_line() -> None:
    story = "Job aborted\nTraceback:\n  x\nkraftlog.errors.ConfigError: no option 'x'\n\n\tat org"
    assert pipeline.gist(story) == "no option 'x'"
    assert pipeline.gist("[PATH_EXISTS] There is one.\n at org") == "[PATH_EXISTS] There is one."
    assert pipeline.gist("") == "Spark failed and says nothing"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("no"), pipeline.USAGE),
        (NetworkError("gone"), pipeline.UNREACHABLE),
        (UnknownTopicOrPartition("t"), pipeline.NOT_FOUND),
        (KraftError("well"), pipeline.FAILED),
        (KeyboardInterrupt(), pipeline.INTERRUPTED),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    def work() -> None:
        raise error

    assert pipeline.ends(work) == code


def test_our_own_bugs_are_not_hidden() -> None:
    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pipeline.ends(work)


def test_a_job_has_what_was_asked_for(tmp_path: Path) -> None:
    options = argparse.Namespace(bootstrap="b:1", out=tmp_path, events=7, seed=3, follow=True)
    job = pipeline.job_of(options)
    assert (job.bootstrap, job.out, job.events, job.seed, job.follow) == (
        "b:1",
        tmp_path,
        7,
        3,
        True,
    )


def test_generators_repeat_themselves_and_stop(tmp_path: Path) -> None:
    def made(seed: int, events: int) -> list[Record[bytes, bytes]]:
        job = pipeline.Job("b:1", tmp_path, events, seed)
        return [
            *clickstream.clicks(job, 10**12),
            *enrich.orders(job),
            *alerts.transactions(job, 10**12),
        ]

    assert made(1, 50) == made(1, 50)
    assert made(1, 50) != made(2, 50)
    assert len(made(1, 50)) == 150
    assert made(1, 0) == []


# -- the whole of it


class Example(NamedTuple):
    main: Callable[[list[str]], int]
    topics: tuple[str, ...]
    picture: str
    says_without_input: str


EXAMPLES = {
    "clickstream": Example(
        clickstream.main, ("--topic",), "sessions.svg", r"\b0 clicks in 0 sessions"
    ),
    "enrich": Example(
        enrich.main,
        ("--orders", "--products", "--target"),
        "revenue.svg",
        r"\b0 orders, 0 of unknown products",
    ),
    "alerts": Example(
        alerts.main, ("--transactions", "--limits", "--alerts"), "alerts.svg", r"\b0 alerts"
    ),
}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("events", [3_000, 0])
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("spark")
def test_one_command_does_it_all(
    kraft_cluster: LocalCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    events: int,
) -> None:
    example = EXAMPLES[name]
    topics = [word for flag in example.topics for word in (flag, f"{name}-{events}{flag}")]
    given = ["-b", kraft_cluster.bootstrap, "--out", str(tmp_path), "--events", str(events)]
    assert example.main([*given, *topics]) == 0
    assert (tmp_path / example.picture).read_text().startswith("<svg")
    told = capsys.readouterr().err
    assert f"drawn: {tmp_path / example.picture}" in told
    assert bool(re.search(example.says_without_input, told)) == (events == 0)
