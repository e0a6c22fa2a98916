import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kraftctl.control import ControlServer, ask, is_listening, socket_path
from kraftctl.exit_codes import NotFound
from kraftctl.output import Json
from kraftlog.errors import ConfigError, KraftError


def handle(operation: str, arguments: Mapping[str, Json]) -> Json:
    if operation == "fail":
        raise OSError(28, "No space left on device")
    if operation == "refuse":
        raise ConfigError("refused", hint="try another")
    return {"operation": operation, "arguments": arguments}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    runtime = tmp_path / "run"
    found = socket_path(str(tmp_path), {"XDG_RUNTIME_DIR": str(runtime)})
    server = ControlServer(found, handle)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            server.serve_one(0.05)

    thread = threading.Thread(target=serve)
    thread.start()
    yield found
    over.set()
    thread.join()
    server.close()
    assert not Path(found).exists()


def test_a_request_is_answered(path: str) -> None:
    reply = ask(path, "restart", nodes=["b1"])
    assert reply == {"operation": "restart", "arguments": {"nodes": ["b1"]}}


def test_a_refusal_comes_back_as_what_it_was_with_its_hint(path: str) -> None:
    with pytest.raises(ConfigError, match="refused") as caught:
        ask(path, "refuse")
    assert caught.value.hint == "try another"


def test_what_fails_is_told_and_nothing_else_ends(path: str) -> None:
    with pytest.raises(KraftError, match="No space left"):
        ask(path, "fail")
    assert ask(path, "ps")["operation"] == "ps"


def test_only_its_user_may_open_it(path: str) -> None:
    assert Path(path).stat().st_mode & 0o077 == 0


def test_without_a_supervisor_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not running"):
        ask(str(tmp_path / "nobody.sock"), "ps")


def test_who_hangs_up_does_no_harm(path: str) -> None:
    """Ctrl-C of a command that waits for its answer, or somebody who only looks."""
    for said in (b"", b'{"operation"', b'{"operation": "ps", "arguments": {}}\n'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(path)
            connection.sendall(said)
    assert ask(path, "ps")["operation"] == "ps"


def test_whether_anybody_is_there_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert not is_listening(str(tmp_path))
    server = ControlServer(socket_path(str(tmp_path), os.environ), handle)
    assert is_listening(str(tmp_path))  # although nobody is served now
    server.serve_one(1.0)
    server.close()
    assert not is_listening(str(tmp_path))
