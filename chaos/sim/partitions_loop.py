"""An event loop on virtual time: the real brokers' tasks run on it as they are.

One loop is one life of a process. Nothing on it happens but in turns of the simulator's schedule,
and a thread is a delay: what runs in an executor happens at once, some time later. When the
process dies its loop stops dead, with all of its tasks; nobody is told and nothing is cleaned up.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Protocol, TypeVar, TypeVarTuple

from chaos.sim.schedule import NodeClock, Schedule

T = TypeVar("T")
Args = TypeVarTuple("Args")

TURN_MS = 0.02
"""How soon a loop that has work takes its turn."""
EXECUTOR_MS = (0.05, 2.0)
STEPS_MAX = 20_000


class Process(Protocol):
    """The machine around a loop."""

    def beside(self, work: Callable[[], None]) -> None:
        """Do something in this process now, or when it wakes up; never if it has died."""
        ...


class SimLoop(asyncio.BaseEventLoop):
    def __init__(
        self, schedule: Schedule, clock: NodeClock, dice: Random, process: Process
    ) -> None:
        self.is_dead = True  # until it is made
        super().__init__()
        self.is_dead = False
        self._schedule = schedule
        self._clock = clock
        self._dice = dice
        self._process = process
        self._turn: deque[asyncio.Handle] = deque()
        self._planned = False
        self.failure: BaseException | None = None
        """What went wrong outside of any task."""
        self.after_turn: Callable[[], None] = lambda: None
        self._is_ending = False

    # -- turns

    def begin(self, life: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """The outermost task: whoever began it looks at its end, and `take_apart` ends it."""
        return self.create_task(life)

    def _plan(self) -> None:
        if not self._planned and not self.is_dead:
            self._planned = True
            self._schedule.later(TURN_MS, lambda: self._process.beside(self._take_turn))

    def _take_turn(self) -> None:
        self._planned = False
        self._run_ready()
        if self.failure is not None:
            raise self.failure
        if self._turn:
            self._plan()
        self.after_turn()

    def _run_ready(self) -> None:
        before = asyncio._get_running_loop()  # noqa: SLF001 - there is no public way
        asyncio._set_running_loop(self)  # noqa: SLF001
        try:
            for _ in range(STEPS_MAX):
                if not self._turn or (self.is_dead and not self._is_ending):
                    break
                handle = self._turn.popleft()
                if not handle.cancelled():
                    handle._run()  # noqa: SLF001 - what every event loop does
        finally:
            asyncio._set_running_loop(before)  # noqa: SLF001

    def stop(self) -> None:
        """The process is gone."""
        self.is_dead = True

    def take_apart(self, life: "asyncio.Task[None]") -> None:
        """When the world has ended: let the tasks of this life end, so that nobody misses them."""
        self.is_dead = self._is_ending = True
        life.cancel()
        self._run_ready()

    # -- what asyncio asks of a loop

    def call_soon(
        self,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self.is_dead or self._is_ending:
            self._turn.append(handle)
            self._plan()
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)

        def fire() -> None:
            if not handle.cancelled() and not self.is_dead:
                self._turn.append(handle)
                self._plan()

        self._schedule.later(max(0.0, when * 1000 / self._clock.rate - self._schedule.now), fire)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays in the schedule, and does nothing there."""

    def time(self) -> float:
        return self._schedule.now * self._clock.rate / 1000

    def run_in_executor(
        self, _executor: object, func: Callable[[*Args], T], *args: *Args
    ) -> "asyncio.Future[T]":
        """The work takes effect at once when its time has come, and is heard of in a turn."""
        done: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        def begin() -> None:
            if not self.is_dead:
                self._process.beside(work)

        self._schedule.later(self._dice.uniform(*EXECUTOR_MS), begin)
        return done

    def call_exception_handler(self, context: dict[str, object]) -> None:
        """A task that is dropped with its process is no failure."""
        error = context.get("exception")
        if isinstance(error, BaseException) and self.failure is None and not self.is_dead:
            self.failure = error

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.is_dead

    def is_closed(self) -> bool:
        return self.is_dead

    def __del__(self) -> None:
        """No complaint: a world that ends in a broken rule leaves its loops as they are."""
