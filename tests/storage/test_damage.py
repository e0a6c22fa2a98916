import errno

import pytest

from storage.damage import StateDamaged, read_derived
from storage.model_disk import ModelDisk


def test_the_message_names_the_file_and_the_reason() -> None:
    damage = StateDamaged("dir/00000000000000000000.index", "is missing")
    assert str(damage) == "dir/00000000000000000000.index is missing"
    assert (damage.path, damage.why) == ("dir/00000000000000000000.index", "is missing")


def test_what_cannot_be_a_derived_file_is_damage() -> None:
    disk = ModelDisk()
    with pytest.raises(StateDamaged, match="epochs is missing"):
        read_derived(disk, "epochs")
    file = disk.open("epochs", create=True)
    file.pwrite([b"0\n"], 0)
    assert read_derived(disk, "epochs") == b"0\n"
    file.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(StateDamaged, match="epochs is too large"):
        read_derived(disk, "epochs")


def test_an_error_of_the_disk_is_not_damage() -> None:
    disk = ModelDisk()
    disk.make_dir("epochs")
    with pytest.raises(OSError, match="epochs") as caught:
        read_derived(disk, "epochs")
    assert caught.value.errno == errno.EISDIR
