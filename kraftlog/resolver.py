"""Where a dial really goes: a map from address to address, in the JSON file of KRAFTLOG_RESOLVE.

    {"10.0.0.2:9101": "127.0.0.1:40311"}

Every dial of a process asks it, those of its first connections too, so that a drill can put a proxy
on each edge of a cluster and cut it. An address that is not in the map is dialled as it is. The
file is read again when it has changed; a new version that makes no sense is reported and the old
one stays.
"""

import json
import os
from collections.abc import Callable, Mapping

from kraftlog.errors import ConfigError
from kraftlog.logs import client_logger

logger = client_logger(__name__)

RESOLVE_VARIABLE = "KRAFTLOG_RESOLVE"

Resolve = Callable[[str], str]
"""The address to dial for an address that somebody advertises."""


class FileResolver:
    """The map in a file. ConfigError if it cannot be read at first."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = _version(path)
        self._addresses = _read(path)

    def __call__(self, address: str) -> str:
        try:
            self._refresh()
        except ConfigError as error:
            logger.warning("the last good addresses stay in use: %s", error)
        return self._addresses.get(address, address)

    def _refresh(self) -> None:
        version = _version(self._path)
        if version != self._version:
            self._version = version
            self._addresses = _read(self._path)


def resolver(environment: Mapping[str, str]) -> Resolve:
    """That of the file which the environment names; without one every address stands for itself."""
    path = environment.get(RESOLVE_VARIABLE)
    return FileResolver(path) if path else str


def _version(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise ConfigError(
            f"{RESOLVE_VARIABLE} names {path}, which cannot be read: {error.strerror}",
            hint="create the file, or unset the variable",
        ) from None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: str) -> Mapping[str, str]:
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not a map of addresses: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(to, str) for to in found.values()):
        raise ConfigError(
            f"{path} is not a map of addresses",
            hint='it looks like {"10.0.0.2:9101": "127.0.0.1:40311"}',
        )
    return found
