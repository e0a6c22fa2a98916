from pathlib import Path
from random import Random

import pytest

from chaos.live import damage
from kraftlog.errors import ConfigError
from kraftlog.types import Uuid


def test_the_last_segment_is_found(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no segment"):
        damage.last_segment(tmp_path)
    for offset in (0, 20, 7):
        (tmp_path / f"{offset:020}.log").touch()
    assert damage.last_segment(tmp_path).name == f"{20:020}.log"


def test_one_bit_in_the_middle_third_changes(tmp_path: Path) -> None:
    path, before = tmp_path / "log", bytes(range(90))
    path.write_bytes(before)
    damage.flip_bit(path, Random(1))
    changed = [
        (place, (one ^ two).bit_count())
        for place, (one, two) in enumerate(zip(before, path.read_bytes(), strict=True))
        if one != two
    ]
    ((place, bits),) = changed
    assert 30 <= place < 60
    assert bits == 1


def test_the_same_seed_does_the_same_damage(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        path = tmp_path / name
        path.write_bytes(b"records")
        damage.append_garbage(path, Random(3))
        found.append(path.read_bytes())
    assert found[0] == found[1]
    assert found[0].startswith(b"records")
    assert len(found[0]) == 7 + damage.GARBAGE_BYTES
    damage.cut_in_half(tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == found[0][: len(found[0]) // 2]


def test_the_id_of_a_directory(tmp_path: Path) -> None:
    properties = tmp_path / "meta.properties"
    properties.write_text(f"version=1\ndirectory.id={Uuid(b'x' * 16)}\n")
    assert damage.directory_id(tmp_path) == Uuid(b"x" * 16)
    properties.write_text("version=1\n")
    with pytest.raises(ConfigError, match=r"no directory\.id"):
        damage.directory_id(tmp_path)
