"""`meta.properties`: whose log directory this is. Kafka's file, version 1.

    version=1
    cluster.id=MkU3OEVBNTcwNTJENDM2Qg
    node.id=1
    directory.id=4vXbmMQIQtmhPq5D1XhKdw

Of Java's properties format we take lines of `key=value`, blank lines and comments. Escapes and
continued lines are refused and not misread. Keys that we do not know stay, and so does the order.
"""

import re
from dataclasses import dataclass

from kraftlog.errors import LogDamaged
from kraftlog.types import Uuid
from storage.files import Files

META_PROPERTIES_FILE = "meta.properties"

VERSION = "version"
CLUSTER_ID = "cluster.id"
NODE_ID = "node.id"
DIRECTORY_ID = "directory.id"

_CURRENT_VERSION = "1"
_NODE_ID_MAX = 2**31 - 1
_NODE_ID = re.compile(r"[1-9][0-9]{0,9}")
_LINE = re.compile(r"\s*([^\s=:\\]+)\s*[=:]\s*([^\\]*?)\s*")
_TEXT = re.compile(r"[!-\[\]-~]+")  # visible ASCII but the backslash
_HINT = "restore the file from a backup, or format the directory anew"


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """All entries in the order of the file; the ones we know have names of their own."""

    entries: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, *, cluster_id: str, directory_id: Uuid, node_id: int | None = None
    ) -> "MetaProperties":
        """What formatting a directory writes; `node_id` None: to be handed out later."""
        fresh = cls(((VERSION, _CURRENT_VERSION), (CLUSTER_ID, cluster_id)))
        if node_id is not None:
            fresh = fresh.with_node_id(node_id)
        return cls((*fresh.entries, (DIRECTORY_ID, str(directory_id))))

    def get(self, key: str) -> str | None:
        return dict(self.entries).get(key)

    @property
    def cluster_id(self) -> str:
        return dict(self.entries)[CLUSTER_ID]

    @property
    def node_id(self) -> int | None:
        text = self.get(NODE_ID)
        return None if text is None else int(text)

    @property
    def directory_id(self) -> Uuid:
        return Uuid.parse(dict(self.entries)[DIRECTORY_ID])

    def with_node_id(self, node_id: int) -> "MetaProperties":
        """The same with another node id, in its place or at the end."""
        values = dict(self.entries) | {NODE_ID: str(node_id)}
        return MetaProperties(tuple(values.items()))


def write_meta_properties(files: Files, directory: str, properties: MetaProperties) -> None:
    """Replace the file, durably. What could not be read back is refused before it is written."""
    path = f"{directory}/{META_PROPERTIES_FILE}"
    for key, value in properties.entries:
        if not _TEXT.fullmatch(key) or not _TEXT.fullmatch(value) or set(key) & set("=:#!"):
            raise ValueError(f"{path} cannot hold {key!r}={value!r}")
    _check(path, properties, {})
    text = "".join(f"{key}={value}\n" for key, value in properties.entries)
    files.write_atomic(path, text.encode())


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """What the directory says about itself; None if it was never formatted."""
    path = f"{directory}/{META_PROPERTIES_FILE}"
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        return None
    entries: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(_lines(path, data), start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        found = _LINE.fullmatch(line)
        if not found:
            raise _bad_line(path, number, f"{line!r} is not key=value")
        key, value = found.groups()
        if key in entries:
            raise _bad_line(path, number, f"{key} was set in line {lines[key]} already")
        entries[key], lines[key] = value, number
    properties = MetaProperties(tuple(entries.items()))
    _check(path, properties, lines)
    return properties


def _lines(path: str, data: bytes) -> list[str]:
    try:
        lines = data.decode("ascii").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise _bad_line(path, number, f"byte {error.start} is not ASCII") from None
    # A value that was cut still looks like a value, but it has lost its end of line.
    if lines.pop():
        raise _bad_line(path, len(lines) + 1, "the line has no end")
    return lines


def _check(path: str, properties: MetaProperties, lines: dict[str, int]) -> None:
    """The entries that we rely on; `lines` says where they stand."""
    values = dict(properties.entries)
    for key in (VERSION, CLUSTER_ID, DIRECTORY_ID):
        if not values.get(key):
            raise LogDamaged(f"{path}: {key} is missing", hint=_HINT)
    if values[VERSION] != _CURRENT_VERSION:
        why = f"{VERSION}={values[VERSION]!r} is not {_CURRENT_VERSION}"
        raise _bad_line(path, lines.get(VERSION), why)
    node_id = values.get(NODE_ID)
    if node_id is not None and not _is_node_id(node_id):
        why = f"{NODE_ID}={node_id!r} is not a number from 1 to {_NODE_ID_MAX}"
        raise _bad_line(path, lines.get(NODE_ID), why)
    try:
        Uuid.parse(values[DIRECTORY_ID])
    except ValueError as error:
        raise _bad_line(path, lines.get(DIRECTORY_ID), f"{DIRECTORY_ID}: {error}") from None


def _is_node_id(text: str) -> bool:
    return bool(_NODE_ID.fullmatch(text)) and int(text) <= _NODE_ID_MAX


def _bad_line(path: str, number: int | None, why: str) -> LogDamaged:
    where = f"{path} line {number}" if number else path
    return LogDamaged(f"{where}: {why}", hint=_HINT)
