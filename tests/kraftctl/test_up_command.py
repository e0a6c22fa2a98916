"""`kraftctl up` in the foreground, and what its flags say."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kraftctl import progress
from kraftctl.exit_codes import Conflict
from kraftctl.places import Places
from kraftctl.up_command import _waiting_for, new_topic, setting
from kraftlog.errors import ConfigError
from kraftlog.local.layout import BROKER, HOST, Layout
from tests.kraftctl.conftest import invoke
from tests.kraftctl.processes import is_alive, processes_below
from tests.waiting import wait_until


def test_topics_and_settings_are_read_from_flags() -> None:
    assert new_topic("t") == ("t", None, None)
    assert new_topic("t:6:3") == ("t", 6, 3)
    assert setting("a.b=c=d") == ("a.b", "c=d")
    for text in ("t:x", "t:1:2:3", ":1"):
        with pytest.raises(ConfigError):
            new_topic(text)
    with pytest.raises(ConfigError):
        setting("a")


@pytest.mark.parametrize(
    "flags",
    [
        "-n 0",
        "-c 0",
        "--timing hasty",
        "--combined -c 3 -n 2",
        "--topic t:x",
        "-X a",
        "--name ../x",
    ],
)
def test_flags_that_make_no_sense_are_refused_before_anything_is_made(
    tmp_path: Path, flags: str
) -> None:
    ran = invoke("up", "-d", *flags.split(), env={"XDG_DATA_HOME": str(tmp_path)})
    assert (ran.code, list(tmp_path.iterdir())) == (2, [])


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = invoke("up", "-d", env={"XDG_DATA_HOME": str(tmp_path / "file")})
    assert ran.code == 6
    assert "cannot be made: Not a directory" in ran.err
    assert "XDG_DATA_HOME" in ran.err


def test_a_directory_for_the_data_is_kept(tmp_path: Path) -> None:
    places = Places.of({"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)})
    places.settle("dev", str(tmp_path / "mine"))
    places.settle("dev", str(tmp_path / "mine"))
    assert os.path.realpath(places.cluster("dev")) == str(tmp_path / "mine")
    with pytest.raises(Conflict, match=r"dev lives in .*mine"):
        places.settle("dev", str(tmp_path / "other"))
    ran = invoke("up", "-d", "--data", "/proc/no", env={"XDG_DATA_HOME": str(tmp_path / "data")})
    assert (ran.code, "--data /proc/no: No such file" in ran.err) == (6, True)


@pytest.mark.slow
def test_a_cluster_lives_and_goes_where_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    mine = tmp_path / "mine"
    up = ("up", "-d", "-c", "1", "-n", "1", "--any-port", "--data", str(mine))
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    started = invoke(*up, "-o", "json", env=env)
    try:
        assert started.code == 0
        assert started.err.startswith("waiting for the quorum to be formed\n")
        assert started.pick("directory") == str(mine)
        assert (mine / "c1" / "meta.properties").exists()
        assert invoke("status", env=env).code == 0
        assert invoke("ps", "--pid", "1", env=env).out == invoke("ps", "--pid", "b1", env=env).out
    finally:
        assert invoke("down", env=env).code == 0
    assert str(mine) in invoke("purge", env=env).err
    assert invoke("purge", "-y", env=env).code == 0
    assert not mine.exists()
    assert invoke("purge", "-y", env=env).code == 5


def test_what_a_cluster_that_starts_waits_for(tmp_path: Path) -> None:
    assert _waiting_for(str(tmp_path)) == "the quorum to be formed"
    layout = Layout(str(tmp_path), [], {}, "fast")
    layout.add(BROKER, metrics=False)
    layout.save()
    assert _waiting_for(str(tmp_path)) == "b1 to listen"
    with socket.create_server((HOST, layout.find("b1").port)):
        assert _waiting_for(str(tmp_path)) == "all to be in service"


def _begun(command: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_ctrl_c_ends_a_combined_cluster_and_an_ephemeral_one_leaves_nothing(
    tmp_path: Path,
) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    command = ["-m", "kraftctl", "up", "-n", "1", "--combined", "--ephemeral", "--any-port"]
    with _begun(command, env) as process:
        try:
            wait_until(
                lambda: invoke("ps", env=env).code == 0 or process.poll() is not None, "ready"
            )
            shown = invoke("ps", "-o", "json", env=env)
            assert shown.pick("ephemeral") is True
            nodes = shown.pick("nodes")
            assert isinstance(nodes, list)
            assert [(each["name"], each["machine"]) for each in nodes] == [
                ("c1", "n1"),
                ("b1", "n1"),
            ]
            assert invoke("restart", "n1", env=env).code == 0
            assert "n1" in invoke("ps", env=env).out
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert "next       kraftctl status" in out
    assert err.splitlines() == ["Ctrl-C stops it; with its data", "dev is stopped"]
    assert not os.path.exists(str(shown.pick("directory")))
    assert invoke("ps", env=env).code == 5


def _is_node(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return b"kraftlog.local.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found by /proc")
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_before_it_is_ready_leaves_nothing(
    tmp_path: Path, *, detach: bool, number: signal.Signals
) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    env |= {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = ["-m", "kraftctl", "up", "-c", "1", "-n", "1", "--any-port", *["-d"] * detach]
    begun: list[int] = []

    def nodes() -> list[int]:
        begun[:] = processes_below(process.pid)
        return list(filter(_is_node, begun))

    with _begun(command, env) as process:
        try:
            wait_until(lambda: len(nodes()) == 2, "the nodes")
            os.kill(nodes()[0], signal.SIGSTOP)  # so it cannot be ready
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            left = list(filter(is_alive, begun))
        finally:
            process.kill()
            for pid in filter(is_alive, begun):
                os.kill(pid, signal.SIGKILL)
    assert (process.returncode, out) == (130, "")
    assert err == "dev was not ready yet; nothing of it runs\n"
    assert left == []
    assert list(tmp_path.glob("data/**/c1*")) == []
    assert not (tmp_path / "config").exists()
    assert invoke("ps", env=env).code == 5
