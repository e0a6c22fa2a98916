"""What a drill does inside the servers, by the directories of `kraftlog.drill_hooks`."""

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from kraftlog.drill_hooks import CLOCK_JUMP, DISK, DURABLE, STALL
from kraftlog.local.layout import Layout

UNFINISHED = ".new-link"
"""A name that the copy was about to take when its server was killed."""


def lay(layout: Layout, inner: Collection[str]) -> None:
    """Before the first start: a directory for each node, and in it those that are asked for."""
    for member in layout.members:
        for name in ("", *inner):
            os.makedirs(os.path.join(layout.hooks_path(member.name), name), exist_ok=True)


def stall(layout: Layout, name: str) -> None:
    """From now on a broker applies no metadata."""
    Path(layout.hooks_path(name), STALL).touch()


def resume(layout: Layout, name: str) -> None:
    Path(layout.hooks_path(name), STALL).unlink(missing_ok=True)


def break_disk(layout: Layout, name: str, how: str, text: str = "") -> None:
    Path(layout.hooks_path(name), DISK, how).write_text(text)


def mend_disk(layout: Layout, name: str, how: str) -> None:
    Path(layout.hooks_path(name), DISK, how).unlink(missing_ok=True)


def jump_clock(layout: Layout, name: str, jump_ms: int) -> None:
    """From now on the wall clock of a node is wrong by so much; 0: right again."""
    Path(layout.hooks_path(name), CLOCK_JUMP).write_text(str(jump_ms))


def lose_power(layout: Layout, name: str) -> None:
    """Of a node that was killed only what it had synced is left."""
    durable = Path(layout.hooks_path(name), DURABLE, "root-0")
    data = layout.data_path(layout.find(name))
    shutil.rmtree(data)
    # Directories of the copy are symbolic links, files are hard links: nothing may be shared.
    shutil.copytree(durable, data, ignore=shutil.ignore_patterns(UNFINISHED))
