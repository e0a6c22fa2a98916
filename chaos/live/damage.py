"""Files of a node that is down, made worse: positions come from the seed."""

from pathlib import Path
from random import Random

from kraftlog.errors import ConfigError
from kraftlog.types import Uuid

GARBAGE_BYTES = 200


def last_segment(directory: Path) -> Path:
    """The segment of a log that was written last."""
    segments = sorted(directory.glob("*.log"))
    if not segments:
        raise ConfigError(f"{directory} has no segment", hint="is anything in that partition?")
    return segments[-1]


def append_garbage(path: Path, dice: Random) -> None:
    with path.open("ab") as file:
        file.write(dice.randbytes(GARBAGE_BYTES))


def flip_bit(path: Path, dice: Random) -> None:
    """One bit somewhere in the middle third of a file."""
    data = bytearray(path.read_bytes())
    place = dice.randrange(len(data) // 3, 2 * len(data) // 3)
    data[place] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def cut_in_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def directory_id(directory: Path) -> Uuid:
    """Of the directory of a node, by its meta.properties."""
    for line in (directory / "meta.properties").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "directory.id":
            return Uuid.parse(value.strip())
    raise ConfigError(f"{directory} has no directory.id", hint="is it formatted?")
