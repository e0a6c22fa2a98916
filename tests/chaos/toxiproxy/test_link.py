"""One link without sockets, whose toxics come, change and go while bytes are on their way."""

import asyncio
import random
from collections.abc import Coroutine

from hypothesis import given
from hypothesis import strategies as st

from chaos.toxiproxy.link import Link
from chaos.toxiproxy.toxics import Toxic
from tests.loops import run, until

KINDS: dict[str, dict[str, int]] = {
    "noop": {},
    "latency": {"latency": 1, "jitter": 1},
    "bandwidth": {"rate": 1_000_000},
    "slicer": {"average_size": 3, "size_variation": 2, "delay": 0},
    "slow_close": {"delay": 1},
    "limit_data": {"bytes": 1 << 40},
}

Steps = list[tuple[str, int]]
STEPS: st.SearchStrategy[Steps] = st.lists(
    st.tuples(
        st.sampled_from([*KINDS, "feed", "feed", "update", "remove", "pause"]), st.integers(0, 9)
    ),
    max_size=25,
)


class Bench:
    """A link between a list of what went in and what came out."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.ended: list[Link] = []

        def start(work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
            return tasks.create_task(work)

        self.link = Link("upstream", start, random.Random(1), lambda: None, self.ended.append)
        self.link.exit.on_change = self._take
        self.toxics: list[Toxic] = []
        self.sent = b""
        self.got = b""

    def _take(self) -> None:
        while len(self.link.exit):
            self.got += self.link.exit.pop().data

    def add(self, kind: str, **attributes: int) -> Toxic:
        toxic = Toxic(
            kind, f"t{len(self.toxics)}", "upstream", 1.0, KINDS.get(kind, {}) | attributes
        )
        self.toxics.append(toxic)
        self.link.add(toxic)
        return toxic

    def remove(self, number: int) -> None:
        if self.toxics:
            self.link.remove(self.toxics.pop(number % len(self.toxics)))

    def feed(self, data: bytes) -> None:
        self.sent += data
        self.link.feed(data)

    async def step(self, what: str, number: int) -> None:
        if what == "feed":
            self.feed(random.Random(len(self.sent)).randbytes(number * 7))
        elif what == "remove":
            self.remove(number)
        elif what == "update" and self.toxics:
            self.link.update(self.toxics[number % len(self.toxics)])
        elif what == "pause":
            for _ in range(number):
                await asyncio.sleep(0)
        elif what in KINDS:
            self.add(what)


@given(steps=STEPS)
def test_no_byte_is_lost_repeated_or_overtaken(steps: Steps) -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            bench = Bench(tasks)
            for what, number in steps:
                await bench.step(what, number)
            bench.link.end()
            await until(lambda: bench.link.exit.is_closed and not len(bench.link.exit), "its end")
            assert bench.got == bench.sent
            bench.link.kill()

    run(story())


def test_without_toxics_a_chunk_passes_in_one_step() -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            bench = Bench(tasks)
            bench.feed(b"at once")
            assert bench.got == b"at once"

    run(story())


def test_removing_a_timeout_ends_the_link() -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            bench = Bench(tasks)
            bench.add("timeout", timeout=0)
            bench.feed(b"lost")
            bench.remove(0)
            assert bench.link.exit.is_closed
            assert bench.got == b""

    run(story())


def test_a_dead_link_takes_toxics_and_bytes_and_does_nothing() -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            bench = Bench(tasks)
            bench.add("latency", latency=3_600_000)
            bench.feed(b"held")
            bench.link.kill()
            bench.link.kill()
            bench.add("noop")
            bench.feed(b"more")
            bench.remove(0)
            bench.remove(0)
            assert bench.got == b""
            assert bench.ended == [bench.link]

    run(story())
