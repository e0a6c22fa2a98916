"""`quorum-state`: epoch, vote and leader of this node, in one line of JSON that Kafka can read.

It is written in one atomic step before anything that depends on it is said to others. What cannot
be read is never taken for epoch 0: a node that forgot its vote could vote twice. Nor is a flipped
bit taken for another vote: the line ends with a CRC of what is before it, which Kafka passes over.
"""

import errno
import json
from collections.abc import Mapping

from crc32c import crc32c

from kraftlog.errors import LogDamaged
from kraftlog.types import Uuid
from quorum.core.config import EPOCH_MAX
from quorum.core.messages import ReplicaKey
from quorum.core.state import ElectionState
from storage.files import Files

ELECTION_FILE = "quorum-state"
_DATA_VERSION = 1
_CRC = "crc32c"
_NOBODY = -1
_NO_DIRECTORY = Uuid(bytes(16))
_HINT = (
    "this node may have voted: restore the file from a backup, or remove the voter, format the"
    " directory anew and add it again"
)


def write_election(files: Files, path: str, election: ElectionState) -> None:
    voted, leader = election.voted_key, election.leader_id
    fields = {
        "leaderId": _NOBODY if leader is None else leader,
        "leaderEpoch": election.epoch,
        "votedId": voted.node_id if voted else _NOBODY,
        "votedDirectoryId": str(voted.directory_id if voted else _NO_DIRECTORY),
        "data_version": _DATA_VERSION,
    }
    files.write_atomic(path, _line({**fields, _CRC: crc32c(_line(fields))}) + b"\n")


def _line(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def read_election(files: Files, path: str) -> ElectionState:
    try:
        text = files.read_bytes(path, limit=4096).decode()
    except FileNotFoundError:
        raise LogDamaged(f"{path} is missing", hint=_HINT) from None
    except UnicodeDecodeError as error:
        raise LogDamaged(f"{path} is not text: {error}", hint=_HINT) from None
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise LogDamaged(f"{path} is too large: {error.strerror}", hint=_HINT) from None
    try:
        return _parse(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogDamaged(
            f"{path} makes no sense: {error!r} in {text[:200]!r}", hint=_HINT
        ) from None


def _parse(fields: dict[str, object]) -> ElectionState:
    found = crc32c(_line({name: fields[name] for name in fields if name != _CRC}))
    if fields[_CRC] != found:
        raise ValueError(f"{_CRC} {fields[_CRC]!r} where {found} is right")
    if fields["data_version"] != _DATA_VERSION:
        raise ValueError(f"data_version {fields['data_version']}")
    epoch = _number(fields["leaderEpoch"], least=0)
    leader = _number(fields["leaderId"], least=_NOBODY)
    voted = _number(fields["votedId"], least=_NOBODY)
    directory = Uuid.parse(str(fields["votedDirectoryId"]))
    return ElectionState(
        epoch,
        voted_key=None if voted == _NOBODY else ReplicaKey(voted, directory),
        leader_id=None if leader == _NOBODY else leader,
    )


def _number(value: object, *, least: int) -> int:
    if type(value) is not int or not least <= value <= EPOCH_MAX:
        raise ValueError(f"{value!r} is not a number from {least}")
    return value
