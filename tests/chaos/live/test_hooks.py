"""What is done by the directories through which a drill reaches into servers."""

from pathlib import Path

import pytest

from chaos.live import hooks
from kraftlog.drill_hooks import CLOCK_JUMP, DISK, DURABLE, HOOKS_VARIABLE, SLOW_SYNC, STALL
from kraftlog.local.layout import BROKER, CONTROLLER, Layout
from storage.durable_copy import server_files


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(str(tmp_path), [], {}, "fast")
    for role in (CONTROLLER, BROKER):
        made.add(role, metrics=False)
    return made


def test_a_node_is_told_of_hooks_only_where_a_drill_laid_them(layout: Layout) -> None:
    assert HOOKS_VARIABLE not in layout.variables("b1")
    hooks.lay(layout, ())
    for name in ("c1", "b1"):
        directory = layout.variables(name)[HOOKS_VARIABLE]
        assert Path(directory).is_dir()
        assert not Path(directory, DURABLE).exists()


def test_a_stall_is_of_one_node_and_ends(layout: Layout) -> None:
    hooks.lay(layout, ())
    hooks.stall(layout, "b1")
    assert Path(layout.hooks_path("b1"), STALL).exists()
    assert not Path(layout.hooks_path("c1"), STALL).exists()
    for _ in range(2):  # to end what has ended is no mistake
        hooks.resume(layout, "b1")
        assert not Path(layout.hooks_path("b1"), STALL).exists()


def test_a_disk_breaks_and_is_mended(layout: Layout) -> None:
    hooks.lay(layout, (DISK,))
    path = Path(layout.hooks_path("b1"), DISK, SLOW_SYNC)
    hooks.break_disk(layout, "b1", SLOW_SYNC, "150")
    assert path.read_text() == "150"
    assert not any(Path(layout.hooks_path("c1"), DISK).iterdir())
    hooks.mend_disk(layout, "b1", SLOW_SYNC)
    assert not path.exists()


def test_a_clock_jumps(layout: Layout) -> None:
    hooks.lay(layout, ())
    for jump_ms in (3_600_000, 0):
        hooks.jump_clock(layout, "b1", jump_ms)
        assert Path(layout.hooks_path("b1"), CLOCK_JUMP).read_text() == str(jump_ms)


def test_after_a_power_loss_only_what_was_synced_is_left(layout: Layout) -> None:
    hooks.lay(layout, (DURABLE,))
    root = Path(layout.data_path(layout.find("b1")))
    (root / "orders-0").mkdir(parents=True)
    files = server_files(layout.hooks_path("b1"), str(root))
    log = files.open(str(root / "orders-0" / "log"), create=True)
    log.pwrite([b"synced"], 0)
    log.sync()
    files.sync_dir(str(root / "orders-0"))
    log.pwrite([b" and not"], 6)
    files.open(str(root / "new"), create=True).close()
    log.close()
    hooks.lose_power(layout, "b1")
    left = {str(each.relative_to(root)): each for each in root.rglob("*")}
    assert set(left) == {"orders-0", "orders-0/log"}
    assert left["orders-0/log"].read_bytes() == b"synced"


def test_what_a_power_loss_leaves_is_no_part_of_the_copy(layout: Layout) -> None:
    """The server writes on, and the copy, until it is made anew, is not to change with it."""
    hooks.lay(layout, (DURABLE,))
    root = Path(layout.data_path(layout.find("b1")))
    (root / "orders-0").mkdir(parents=True)
    (root / "orders-0" / "log").write_bytes(b"old")
    server_files(layout.hooks_path("b1"), str(root))
    hooks.lose_power(layout, "b1")
    assert not (root / "orders-0").is_symlink()
    (root / "orders-0" / "log").write_bytes(b"newer")
    hooks.lose_power(layout, "b1")
    assert (root / "orders-0" / "log").read_bytes() == b"old"
