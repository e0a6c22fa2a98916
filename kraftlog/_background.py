"""Tasks that live as long as a client, which is opened in one function and closed in another.

A TaskGroup wants to be entered and left by the same task; this one has a task of its own for that.
Nothing is lost: when a task of the group fails, all others are cancelled, `on_failure` hears of it,
and `close` waits for everything.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Self

from kraftlog.memory import keep_freed_memory


class Background:
    def __init__(self, name: str, on_failure: Callable[[BaseException], None]) -> None:
        self._name = name
        self._on_failure = on_failure
        self._closing = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._root: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, name: str, on_failure: Callable[[BaseException], None]) -> Self:
        """A group that takes tasks at once."""
        keep_freed_memory()
        background = cls(name, on_failure)
        opened = asyncio.Event()
        # The one task outside a group: `close` awaits it, and it cannot end unheard.
        background._root = asyncio.Task(background._run(opened), name=name)
        await opened.wait()
        return background

    async def _run(self, opened: asyncio.Event) -> None:
        try:
            async with asyncio.TaskGroup() as self._group:
                opened.set()
                await self._closing.wait()
                for task in self._tasks:
                    task.cancel()
        except BaseExceptionGroup as failures:
            self._on_failure(failures.exceptions[0])
        finally:
            self._group = None

    def start(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None] | None:
        """Run until it ends, is cancelled, or the client closes; None if it has closed already."""
        if self._group is None or self._closing.is_set():
            work.close()
            return None
        task = self._group.create_task(work, name=f"{self._name}: {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel all tasks and wait for them."""
        self._closing.set()
        if self._root is not None:
            await asyncio.wait([self._root])
