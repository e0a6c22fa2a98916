"""Finding and keeping the real server."""

import os
import signal
from pathlib import Path

import pytest

from chaos.toxiproxy import real
from chaos.toxiproxy.wrapper import Backend, ToxiServer
from kraftlog.errors import ConfigError
from tests.waiting import wait_until


def test_a_server_that_is_nowhere_is_an_error_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(real, "TOOLS", "nowhere")
    with pytest.raises(ConfigError, match=r"toxiproxy-server .* \(make toxiproxy builds it"):
        ToxiServer.start("toxiproxy")


def test_on_path_it_is_found_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / real.NAME
    binary.write_text("#!/bin/sh\nexit 1\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert real.find_binary() == str(binary)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_it_is_gone_when_its_keeper_is_killed(server: ToxiServer) -> None:
    backend: Backend = "toxiproxy" if server.pid != server._process.pid else "embedded"
    with ToxiServer.start(backend) as victim:
        os.kill(victim._process.pid, signal.SIGKILL)
        victim._process.wait()
        wait_until(lambda: is_gone(victim.pid), "the end of the server")
