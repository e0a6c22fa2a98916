"""One direction of a connection: where bytes enter, a stage for each toxic, where they leave.

    source -> entry ... stage ... stage ... exit -> sink

Without toxics the entry is the exit, and a chunk is written on in the same step in which it was
read. Adding, changing and removing a toxic happens in one step too: nobody waits for a peer.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from chaos.toxiproxy import toxics
from chaos.toxiproxy.buffers import Buffer, Chunk
from chaos.toxiproxy.toxics import Stage, Stream, Toxic

StartTask = Callable[[Coroutine[None, None, None]], "asyncio.Task[None]"]


@dataclass(slots=True)
class _Place:
    """A stage, its toxic, and the task that runs it."""

    toxic: Toxic
    stage: Stage
    task: "asyncio.Task[None] | None" = None


@dataclass(slots=True)
class Link:
    stream: Stream
    start_task: StartTask
    dice: random.Random
    on_entry: Callable[[], None]
    """The entry is another buffer now: the source looks again whether it is full."""
    on_end: Callable[["Link"], None]
    """The sink is gone."""
    exit: Buffer = field(default_factory=Buffer)
    bytes_received: int = 0
    bytes_sent: int = 0
    is_dead: bool = False
    _places: list[_Place] = field(default_factory=list)

    @property
    def entry(self) -> Buffer:
        return self._places[0].stage.input if self._places else self.exit

    def begin(self, chain: Sequence[Toxic]) -> None:
        for toxic in chain:
            self._append(toxic)
        for place in self._places:
            self._run(place)

    def feed(self, data: bytes) -> None:
        """What the source has read."""
        if not self.is_dead:
            self.bytes_received += len(data)
            self.entry.put(Chunk(data, asyncio.get_running_loop().time()))

    def end(self) -> None:
        """The source has nothing more."""
        self.entry.close()

    def kill(self) -> None:
        """The sink is gone: whatever is still here goes nowhere."""
        if self.is_dead:
            return
        self.is_dead = True
        for place in self._places:
            self._halt(place)
            place.stage.input.close()
        self.exit.close()
        self.on_end(self)

    def add(self, toxic: Toxic) -> None:
        """At the end of the chain. What has passed the others already does not see it."""
        before = self._places[-1] if self._places else None
        place = self._append(toxic)
        if self.is_dead:
            return
        self._run(place)
        if before is not None:
            self._run(before)
        self.on_entry()

    def _append(self, toxic: Toxic) -> _Place:
        buffer = Buffer(toxic.chunks_max)
        if self.exit.is_closed:
            buffer.close()
        if self._places:
            self._places[-1].stage.output = buffer
        place = _Place(toxic, Stage(buffer, self.exit, self.dice))
        self._places.append(place)
        return place

    def update(self, toxic: Toxic) -> None:
        """It has other numbers now."""
        place = self._place_of(toxic)
        if place is not None and not self.is_dead:
            self._run(place)

    def remove(self, toxic: Toxic) -> None:
        """What it held back goes on at once, unless it takes the connection with it."""
        place = self._place_of(toxic)
        if place is None:
            return
        self._halt(place)
        at = self._places.index(place)
        del self._places[at]
        if toxics.closes_on_removal(toxic, place.stage):
            place.stage.output.close()
        place.stage.input.pour_into(place.stage.output)
        if at and not self.is_dead:
            before = self._places[at - 1]
            before.stage.output = place.stage.output
            self._run(before)
        self.on_entry()

    def _place_of(self, toxic: Toxic) -> _Place | None:
        return next((place for place in self._places if place.toxic is toxic), None)

    def _run(self, place: _Place) -> None:
        """Begin it, or begin it anew. One that has seen its end stays ended."""
        ended = place.task is not None and place.task.done()
        if not ended:
            self._halt(place)
            place.task = self.start_task(toxics.run(place.toxic, place.stage))

    @staticmethod
    def _halt(place: _Place) -> None:
        if place.task is not None:
            place.task.cancel()
