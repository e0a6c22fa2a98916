import json
from pathlib import Path

import pytest

from kraftlog.errors import (
    ConfigError,
    ErrorCode,
    KraftError,
    LogDamaged,
    LogDirLocked,
    NetworkError,
    RequestTimedOut,
)
from quorum.cli import exit_code, main
from quorum.commands import ClusterExists, VoterUnknown
from quorum.directory import AlreadyFormatted, NotFormatted
from quorum.joining import NodeIdTaken
from quorum.local import free_port
from tests.quorum.samples import CLUSTER


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KraftError("x"), 1),
        (LogDamaged("x"), 1),
        (ConfigError("x"), 2),
        (NetworkError("x"), 4),
        (RequestTimedOut("x"), 4),
        (NotFormatted("x"), 5),
        (VoterUnknown("x"), 5),
        (KraftError("x", code=ErrorCode.VOTER_NOT_FOUND), 5),
        (AlreadyFormatted("x"), 6),
        (ClusterExists("x"), 6),
        (NodeIdTaken("x"), 6),
        (LogDirLocked("x"), 6),
        (KraftError("x", code=ErrorCode.DUPLICATE_VOTER), 6),
    ],
)
def test_each_error_has_its_exit_code(error: KraftError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "log.dirs names 0 directories"),
        (["run", "--directory", "/x", "-X", "nonsense"], "-X nonsense"),
        (["run", "--directory", "/x", "-X", "listenrs=x:1"], "did you mean listeners?"),
        (["run", "--directory", "/x", "--listen", "nowhere"], "must be host:port"),
        (["run", "--directory", "/x", "--node-id", "zero"], "node.id = 'zero'"),
        (["form", "--directory", "/x"], "node.id is missing"),
        (["form", "--directory", "/x", "--node-id", "1", "--listen", "h:0"], "choose a port"),
        (["form", "--voter", "1"], "it looks like 101=/data/c1@127.0.0.1:9101"),
        (["form", "--voter", "0=/x@h:1"], "node ids begin at 1"),
        (["form", "--voter", "1=/x@h"], "must be host:port"),
        (["format", "--directory", "/x", "--node-id", "1", "--cluster-id", "x"], "not a uuid"),
        (["join", "nowhere", "--directory", "/x"], "must be host:port"),
        (["status", "-b", "x"], "--bootstrap"),
        (["status", "-b", "h:1", "--timeout", "soon"], "--timeout"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_usage_is_argparses(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["dance"], ["run", "--profile", "slow"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("form", "join", "run", "status", "Exit codes"))


def test_a_directory_is_formatted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["format", "--directory", f"{tmp_path}/c1", "--node-id", "7", "-o", "json"]
    arguments += ["--cluster-id", str(CLUSTER)]
    assert main(arguments) == 0
    made = json.loads(capsys.readouterr().out)["data"]
    assert (made["cluster_id"], made["node_id"]) == (str(CLUSTER), 7)
    assert main(arguments) == 6
    error = json.loads(capsys.readouterr().out)["error"]
    assert "belongs to node 7" in error["message"]


def test_several_are_formed_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    voters = [f"--voter={number}={tmp_path}/c{number}@h:{number}" for number in (1, 2, 3)]
    assert main(["form", *voters]) == 0
    shown = capsys.readouterr().out
    assert "with 3 voters" in shown
    assert f"python -m quorum run --directory {tmp_path}/c2 --listen h:2" in shown
    assert main(["form", *voters]) == 6


def test_what_is_not_formatted_is_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--directory", f"{tmp_path}/c1"]) == 5
    assert "`form` makes a new cluster in it" in capsys.readouterr().err


def test_nobody_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    assert main(["status", "-b", nobody, "--timeout", "300ms"]) == 4
    assert main(["propose", "x", "-b", nobody, "--timeout", "300ms"]) == 4
    assert main(["join", nobody, "--directory", f"{tmp_path}/c1", "--node-id", "1"]) == 4
    assert "does not answer" in capsys.readouterr().err
    assert not (tmp_path / "c1").exists()
