"""Talking to the supervisor of a local cluster: one line of JSON there, one back, on a socket that
only its user can open.
"""

import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Callable, Mapping

from kraftctl.exit_codes import FAILED, NotFound, error_of, exit_code
from kraftctl.output import Json
from kraftlog.errors import KraftError

LINE_BYTES_MAX = 1 << 20
TIMEOUT_SECONDS = 120.0
LISTENING_SECONDS = 1.0
REQUEST_SECONDS = 5.0
"""So long the others wait for one who says nothing."""

Handle = Callable[[str, Mapping[str, Json]], Json]


class ControlError(KraftError):
    """The supervisor could not do it."""


def socket_path(directory: str, environment: Mapping[str, str]) -> str:
    """Short, since the name of a socket must be: beside other sockets of this user."""
    base = environment.get("XDG_RUNTIME_DIR") or f"/tmp/kraftlog-{os.getuid()}"  # noqa: S108
    os.makedirs(base, mode=0o700, exist_ok=True)
    if os.stat(base).st_uid != os.getuid():
        raise ControlError(f"{base} belongs to somebody else", hint="set XDG_RUNTIME_DIR")
    name = hashlib.sha256(os.path.abspath(directory).encode()).hexdigest()[:16]
    return os.path.join(base, f"kraftlog-{name}.sock")


def ask(path: str, operation: str, **arguments: Json) -> Mapping[str, Json]:
    """Have the supervisor do something; NotFound if there is none."""
    request = json.dumps({"operation": operation, "arguments": arguments}) + "\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        try:
            connection.connect(path)
        except OSError:
            raise NotFound("the cluster is not running", hint="start it: kraftctl up -d") from None
        connection.sendall(request.encode())
        with connection.makefile("rb") as stream:
            reply = json.loads(stream.readline(LINE_BYTES_MAX) or b"{}")
    if "data" not in reply:
        code = int(reply.get("exit_code", FAILED))
        raise error_of(code, str(reply.get("error", "no answer")), str(reply.get("hint", "")))
    data: Mapping[str, Json] = reply["data"]
    return data


def is_running(directory: str) -> bool:
    """Whether a local cluster has a supervisor that answers."""
    try:
        ask(socket_path(directory, os.environ), "ps")
    except KraftError:
        return False
    return True


def is_listening(directory: str) -> bool:
    """Whether it has one at all: that may be busy."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(LISTENING_SECONDS)
        try:
            connection.connect(socket_path(directory, os.environ))
        except (OSError, KraftError):
            return False
    return True


class ControlServer:
    """Serves one request after the other, in the thread that calls `serve`."""

    def __init__(self, path: str, handle: Handle) -> None:
        self._path = path
        self._handle = handle
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.exists(path):
            os.unlink(path)  # of a supervisor that is gone: its cluster's lock is ours by now
        self._socket.bind(path)
        os.chmod(path, 0o600)
        self._socket.listen(8)

    def serve_one(self, timeout: float) -> None:
        """The next request, if one comes in time."""
        self._socket.settimeout(timeout)
        try:
            connection, _ = self._socket.accept()
        except TimeoutError:
            return
        with connection, contextlib.suppress(OSError):  # whoever asked may be gone by now
            connection.settimeout(REQUEST_SECONDS)
            with connection.makefile("rb") as stream:
                line = stream.readline(LINE_BYTES_MAX)
            if line.endswith(b"\n"):
                connection.sendall(json.dumps(self._answer(line)).encode() + b"\n")

    def _answer(self, line: bytes) -> Mapping[str, Json]:
        try:
            request = json.loads(line)
            data = self._handle(str(request["operation"]), dict(request["arguments"]))
        except KraftError as error:
            return {"error": error.message, "hint": error.hint, "exit_code": exit_code(error)}
        except OSError as error:  # of the disk, or of a process that cannot be started
            return {"error": str(error), "hint": ""}
        except (ValueError, KeyError, TypeError) as error:
            return {"error": f"no request: {error!r}", "hint": ""}
        return {"data": data}

    def close(self) -> None:
        self._socket.close()
        if os.path.exists(self._path):
            os.unlink(self._path)
