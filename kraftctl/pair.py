"""A controller and a broker on one machine: two processes, from one file, under one supervisor.

Keys at the top of the file are for both; those below [role.controller] and [role.broker] for one of
them. Each has its own id, port and directory. When one of the two ends, the other is stopped too:
whoever started us starts both again.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from types import FrameType

from kraftctl.exit_codes import INTERRUPTED, OK, error_of
from kraftctl.output import Json
from kraftctl.session import Session
from kraftlog.errors import ConfigError

CONTROLLER, BROKER = "controller", "broker"
ROLES = (CONTROLLER, BROKER)
POLL_SECONDS = 0.1
STOP_SECONDS = 60.0

Child = subprocess.Popen[bytes]


def run_pair(session: Session, path: str) -> int:
    """Until SIGTERM or SIGINT, or until one of the two ends; the exit code is that one's."""
    files = split_config(path)
    asked: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        with tempfile.TemporaryDirectory(prefix="kraftlog-pair-") as directory:
            return _supervise(session, _start(files, directory), asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _supervise(session: Session, children: Mapping[str, Child], asked: list[int]) -> int:
    data: Json = {role: {"pid": child.pid} for role, child in children.items()}
    lines = [f"{role:<13}process {child.pid}" for role, child in children.items()]
    session.output.show(data, "\n".join(lines))
    try:
        while not asked and all(child.poll() is None for child in children.values()):
            time.sleep(POLL_SECONDS)
        ended = {role: child.returncode for role, child in children.items() if _is_over(child)}
        for role in (BROKER, CONTROLLER):  # so that controllers are there to hear of it
            _end(children[role])
    finally:
        for child in children.values():
            child.kill()
            child.wait()
            if child.stdin is not None:
                child.stdin.close()
    if asked:
        return INTERRUPTED if asked[0] == signal.SIGINT else OK
    role, code = next(iter(ended.items()))
    raise error_of(
        code,
        f"the {role} has ended with {code}, and the other was stopped",
        "its last words are above",
    )


def _is_over(child: Child) -> bool:
    return child.poll() is not None


def _end(child: Child) -> None:
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


def _start(files: Mapping[str, str], directory: str) -> dict[str, Child]:
    children = {}
    for role, text in files.items():
        path = os.path.join(directory, f"{role}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        # It ends with us, however we end: `child` watches the pipe.
        child = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "kraftlog.local.child", "kraftctl", role],
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno(),
            start_new_session=True,  # Ctrl-C is for us, and we stop them in order
        )
        run = ["node", "run", "--role", role, "--config", path]
        if child.stdin is not None:
            child.stdin.write(json.dumps([run]).encode() + b"\n")
            child.stdin.flush()
        children[role] = child
    return children


def split_config(path: str) -> dict[str, str]:
    """The file of each role."""
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    roles = document.pop("role", {})
    if not isinstance(roles, dict) or set(roles) != set(ROLES):
        raise ConfigError(
            f"{path} does not say what each of the two shall be",
            hint="[role.controller] and [role.broker] say node.id, listeners and log.dirs of each",
        )
    shared = dict(_flat(document, ""))
    return {role: _toml(shared | dict(_flat(roles[role], ""))) for role in ROLES}


def _flat(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _toml(values: Mapping[str, object]) -> str:
    return "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in values.items())
