"""What each toxic does with the chunks of a link, and which numbers it takes.

A toxic is a coroutine that moves chunks from a stage's input to its output until the input ends. It
may be cancelled at any await, when it is changed or removed or gets a neighbour, and is then begun
anew; what must outlive that is in the stage's state.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from chaos.toxiproxy.buffers import CHUNKS_MAX, Buffer, Chunk

Stream = Literal["upstream", "downstream"]
STREAMS: tuple[Stream, ...] = ("upstream", "downstream")

INT64_MAX = (1 << 63) - 1
INT64_MIN = -(1 << 63)
LATENCY_CHUNKS_MAX = 1024
_SLICE_SECONDS = 0.1
_MS = 0.001
_US = 0.000_001

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "latency": ("latency", "jitter"),
    "bandwidth": ("rate",),
    "slow_close": ("delay",),
    "timeout": ("timeout",),
    "reset_peer": ("timeout",),
    "slicer": ("average_size", "size_variation", "delay"),
    "limit_data": ("bytes",),
    "noop": (),
}


@dataclass(slots=True)
class Toxic:
    """One toxic of a proxy; every link of its direction has a stage for it."""

    kind: str
    name: str
    stream: str
    """As its maker spelled it."""
    toxicity: float
    attributes: dict[str, int]

    @property
    def direction(self) -> Stream:
        return "upstream" if self.stream.lower() == "upstream" else "downstream"

    @property
    def chunks_max(self) -> int:
        return LATENCY_CHUNKS_MAX if self.kind == "latency" else CHUNKS_MAX


@dataclass(slots=True)
class State:
    """What a stage remembers while its toxic is begun anew."""

    bytes_passed: int = 0
    reset_at: float | None = None


@dataclass(slots=True)
class Stage:
    """A toxic's place in a link."""

    input: Buffer
    output: Buffer
    dice: random.Random
    state: State = field(default_factory=State)

    async def pass_on(self, chunk: Chunk) -> None:
        """Move the head on, as this chunk; both at once, as soon as there is room."""
        await self.output.room()
        self.input.pop()
        self.output.put(chunk)

    async def pass_part(self, chunk: Chunk, part_bytes: int) -> Chunk:
        """Move a first part on; the rest stays the head."""
        rest = replace(chunk, data=chunk.data[part_bytes:])
        await self.output.room()
        if rest.data:
            self.input.replace_head(rest)
        else:
            self.input.pop()
        self.output.put(replace(chunk, data=chunk.data[:part_bytes]))
        return rest


def problem(kind: str, attributes: Mapping[str, int]) -> str | None:
    """Why these attributes must not reach a server; the real one would die of the first data."""
    get = attributes.get
    if kind == "bandwidth" and get("rate", 0) < 0:
        return f"bandwidth: rate {get('rate')} must not be negative"
    if kind == "latency" and get("jitter", 0) > INT64_MAX // 2:
        return f"latency: jitter {get('jitter')} must be at most {INT64_MAX // 2}"
    if kind == "slicer" and not 0 <= get("size_variation", 0) < get("average_size", 0):
        return (
            f"slicer: average_size {get('average_size', 0)} must be greater than "
            f"size_variation {get('size_variation', 0)}, and that must not be negative"
        )
    return None


async def run(toxic: Toxic, stage: Stage) -> None:
    """One run of a toxic on a link; whether it strikes is drawn once per run."""
    strikes = stage.dice.random() < toxic.toxicity
    await _PIPES[toxic.kind if strikes else "noop"](stage, toxic.attributes)
    stage.output.close()


def closes_on_removal(toxic: Toxic, stage: Stage) -> bool:
    """A timeout takes its connections with it, and a reset that has begun is not called off."""
    return toxic.kind == "timeout" or stage.state.reset_at is not None


async def _noop(stage: Stage, _attributes: Mapping[str, int]) -> None:
    while (chunk := await stage.input.first()) is not None:
        await stage.pass_on(chunk)


async def _latency(stage: Stage, attributes: Mapping[str, int]) -> None:
    clock = asyncio.get_running_loop().time
    while (chunk := await stage.input.first()) is not None:
        leaves = chunk.arrived + _delay_ms(stage.dice, attributes) * _MS
        await asyncio.sleep(max(0.0, leaves - clock()))
        await stage.pass_on(replace(chunk, arrived=clock()))


def _delay_ms(dice: random.Random, attributes: Mapping[str, int]) -> int:
    jitter = attributes["jitter"]
    return attributes["latency"] + (dice.randrange(2 * jitter) - jitter if jitter > 0 else 0)


async def _bandwidth(stage: Stage, attributes: Mapping[str, int]) -> None:
    clock = asyncio.get_running_loop().time
    slice_bytes = attributes["rate"] * 100
    owed = 0.0
    while (chunk := await stage.input.first()) is not None:
        if slice_bytes == 0:
            await _for_ever()
        owed += len(chunk.data) / slice_bytes * _SLICE_SECONDS
        while len(chunk.data) > slice_bytes:
            await asyncio.sleep(_SLICE_SECONDS)
            chunk = await stage.pass_part(chunk, slice_bytes)
            owed -= _SLICE_SECONDS
        began = clock()
        await asyncio.sleep(max(0.0, owed))
        owed -= clock() - began  # a timer is late: the next chunk waits less
        await stage.pass_on(chunk)


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def _slow_close(stage: Stage, attributes: Mapping[str, int]) -> None:
    await _noop(stage, attributes)
    await asyncio.sleep(max(0.0, attributes["delay"] * _MS))


async def _timeout(stage: Stage, attributes: Mapping[str, int]) -> None:
    """Data is dropped; the time counts from the last that came."""
    seconds = attributes["timeout"] * _MS if attributes["timeout"] > 0 else None
    try:
        while True:
            async with asyncio.timeout(seconds):
                chunk = await stage.input.first()
            if chunk is None:
                return
            stage.input.pop()
    except TimeoutError:
        return


async def _reset_peer(stage: Stage, attributes: Mapping[str, int]) -> None:
    """The first data, or the end, begins it. The socket was prepared to close with a reset."""
    clock = asyncio.get_running_loop().time
    if stage.state.reset_at is None:
        await stage.input.first()
        stage.state.reset_at = clock() + attributes["timeout"] * _MS
    await asyncio.sleep(max(0.0, stage.state.reset_at - clock()))


async def _slicer(stage: Stage, attributes: Mapping[str, int]) -> None:
    while (chunk := await stage.input.first()) is not None:
        for size in list(slices(len(chunk.data), attributes, stage.dice)):
            chunk = await stage.pass_part(chunk, size)
            await asyncio.sleep(max(0.0, attributes["delay"] * _US))


def slices(size: int, attributes: Mapping[str, int], dice: random.Random) -> Iterator[int]:
    """Cut in two about the middle, and each half again, until the pieces are small enough."""
    average, variation = attributes["average_size"], attributes["size_variation"]
    if size - average <= variation:
        yield size
        return
    middle = size // 2 + (dice.randrange(2 * variation) - variation if variation else 0)
    yield from slices(middle, attributes, dice)
    yield from slices(size - middle, attributes, dice)


async def _limit_data(stage: Stage, attributes: Mapping[str, int]) -> None:
    while (chunk := await stage.input.first()) is not None:
        left = max(0, attributes["bytes"] - stage.state.bytes_passed)
        await stage.output.room()
        stage.input.pop()
        stage.output.put(replace(chunk, data=chunk.data[:left]))
        stage.state.bytes_passed += min(left, len(chunk.data))
        if stage.state.bytes_passed >= attributes["bytes"]:
            return


_Pipe = Callable[[Stage, Mapping[str, int]], Awaitable[None]]
_PIPES: dict[str, _Pipe] = {
    "noop": _noop,
    "latency": _latency,
    "bandwidth": _bandwidth,
    "slow_close": _slow_close,
    "timeout": _timeout,
    "reset_peer": _reset_peer,
    "slicer": _slicer,
    "limit_data": _limit_data,
}
