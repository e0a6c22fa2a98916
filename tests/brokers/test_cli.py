import json
from pathlib import Path

import pytest

from brokers.cli import exit_code, main
from kraftlog.errors import (
    ConfigError,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    KraftError,
    LogDirLocked,
    NetworkError,
    NotController,
    StorageError,
)
from kraftlog.types import Uuid

CLUSTER = str(Uuid(b"cluster id......"))


def format_flags(path: Path) -> list[str]:
    return ["--log-dirs", str(path / "d"), "--cluster-id", CLUSTER, "--peers", "127.0.0.1:1"]


def test_format_makes_directories_those_of_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["format", *format_flags(tmp_path), "--node-id", "3", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["error"] is None
    assert document["data"] == {
        "cluster_id": CLUSTER,
        "node_id": 3,
        "log_dirs": str(tmp_path / "d"),
    }
    assert f"cluster.id={CLUSTER}\n" in (tmp_path / "d" / "meta.properties").read_text()
    # Once more changes nothing; another id is refused.
    assert main(["format", *format_flags(tmp_path)]) == 0
    assert "node_id      3\n" in capsys.readouterr().out
    assert main(["format", *format_flags(tmp_path), "--node-id", "4"]) == 1
    assert "node.id=3" in capsys.readouterr().err


def test_a_file_the_environment_and_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "b1.toml"
    file.write_text(f'log.dirs = "{tmp_path}/a"\nnode.id = 5\nquorum.peers = "c1:9093"\n')
    monkeypatch.setenv("KRAFTLOG_NODE_ID", "6")
    flags = ["--config", str(file), "-X", f"cluster.id={CLUSTER}"]
    assert main(["format", *flags, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["node_id"] == 6


def test_mistakes_are_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--peers", "c1:9093"]) == 2
    told = capsys.readouterr().err
    assert "error: log.dirs is empty\n" in told
    assert "hint:  name at least one directory\n" in told
    assert main(["run", *format_flags(tmp_path), "-X", "nonsense"]) == 2
    assert main(["run", *format_flags(tmp_path), "-X", "log.sgment.bytes=1", "-o", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["data"] is None
    assert document["error"]["hint"] == "did you mean log.segment.bytes?"


def test_no_command_is_a_mistake_too() -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (NetworkError("x"), 4),
        (NotController("x"), 4),
        (LogDirLocked("x"), 6),
        (DuplicateBrokerRegistration("x"), 6),
        (StorageError("x"), 1),
        (InconsistentClusterId("x"), 1),
    ],
)
def test_exit_codes(error: KraftError, code: int) -> None:
    assert exit_code(error) == code
