"""Dialling another node: tuned channels, and one long-lived stream of requests per purpose.

The writer sends all that is queued in one message (`kraftlog.framing`). A stream has no gRPC
timeout, which would end it for all: each request has a deadline of its own
in the table here, and a reply without an entry there came too late and is dropped. One reader task
and one writer task own a call. Nobody else awaits a read or a write: a wait that is cut short
cancels the call.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from kraftlog.errors import ThrottledError
from kraftlog.framing import Envelope, frame, take_message
from kraftlog.resolver import Resolve

logger = logging.getLogger(__name__)

MESSAGE_BYTES_MAX = 4 << 20
"""What both ends accept. Larger ones put their whole transfer time on a neighbour's latency."""
OPEN_REQUESTS_MAX = 10_000
OPEN_BYTES_MAX = 16 << 20
RECONNECT_MS = 50
CALLS_END_SECONDS = 0.5
"""How long a stream that closes waits for gRPC to be done with its calls; it takes less than 1 ms.
"""

# By default gRPC waits up to two minutes before it dials again: 20 s after an outage of 45 s.
CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Also the time that one attempt gets: less, and a peer that is busy is never reached.
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.keepalive_time_ms", 1_000),
    ("grpc.keepalive_timeout_ms", 500),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.enable_http_proxy", 0),
)

ChannelOptions = Sequence[tuple[str, int]]


def open_channel(
    address: str, resolve: Resolve = str, options: ChannelOptions = ()
) -> grpc.aio.Channel:
    """A channel that is back within a second of an outage's end."""
    return grpc.aio.insecure_channel(resolve(address), options=(*CHANNEL_OPTIONS, *options))


# -- the stream


class Answer(Protocol):
    """The envelope of a reply."""

    @property
    def correlation_id(self) -> int: ...


R = TypeVar("R", bound=Answer)

Encode = Callable[[int], Envelope]
"""The envelope of a request under a correlation id."""

_Call: TypeAlias = "grpc.aio.StreamStreamCall[bytes, bytes]"
_OpenCall: TypeAlias = "grpc.aio.StreamStreamMultiCallable[bytes, bytes]"


class _CallOver(Exception):
    """The call has ended, for a reason that is not an error of ours."""


_ENDINGS = (
    grpc.RpcError,
    grpc.aio.UsageError,
    grpc.aio.InternalError,
    asyncio.InvalidStateError,
)


@dataclass(slots=True)
class _Open(Generic[R]):
    on_reply: Callable[[R | None], None]
    on_unsent: Callable[[], None] | None
    deadline: float
    size: int
    is_silent: bool
    written: bool = False


class RequestStream(Generic[R]):
    """Requests to one address, on a stream that is opened on use and again after it failed.

    `run` belongs into a TaskGroup. Everything else is for the thread of the loop.
    """

    def __init__(
        self,
        address: str,
        method: str,
        *,
        parse: Callable[[bytes], Iterable[R]],
        resolve: Resolve = str,
        reopen_when_late: bool = False,
        channel_options: ChannelOptions = (),
        on_stray: Callable[[R], None] | None = None,
    ) -> None:
        """`parse` gives the replies in a message. `reopen_when_late`: a missed deadline closes the
        stream, for peers that always answer in time or not at all. `on_stray` is given what comes
        for a request that nobody waits for any more.
        """
        self.address = address
        self._loop = asyncio.get_running_loop()
        self._method = method
        self._parse = parse
        self._resolve = resolve
        self._reopen_when_late = reopen_when_late
        self._channel_options = channel_options
        self._on_stray = on_stray
        self._channel: grpc.aio.Channel | None = None
        self._target = ""
        self._call: _Call | None = None
        self._frames: deque[bytes] = deque()
        self._frame_numbers: deque[int] = deque()
        self._queued = asyncio.Event()
        self._open: dict[int, _Open[R]] = {}
        self._open_bytes = 0
        self._being_said: list[int] = []
        """What is silent in the message that is being written."""
        self._correlation_id = 0
        self._timer: asyncio.TimerHandle | None = None

    # -- asking

    def send(
        self,
        encode: Encode,
        *,
        timeout_ms: float,
        on_reply: Callable[[R | None], None],
        on_unsent: Callable[[], None] | None = None,
        silent: bool = False,
    ) -> None:
        """Queue a request. `on_reply` is called once: with the reply, or with None if there is none
        in time, and then its outcome is unknown. Where `on_unsent` is given it is called instead if
        nothing of the request was written. ThrottledError if too much is open already. `silent`: it
        gets no reply, and is over when it is written.
        """
        if len(self._open) >= OPEN_REQUESTS_MAX or self._open_bytes >= OPEN_BYTES_MAX:
            raise ThrottledError(
                f"{len(self._open)} requests with {self._open_bytes} bytes to {self.address} are"
                " not answered yet",
                hint="wait for some of them",
            )
        self._correlation_id += 1
        framed = frame(encode(self._correlation_id))
        deadline = self._loop.time() + timeout_ms / 1000
        self._open[self._correlation_id] = _Open(on_reply, on_unsent, deadline, len(framed), silent)
        self._open_bytes += len(framed)
        self._frames.append(framed)
        self._frame_numbers.append(self._correlation_id)
        self._queued.set()
        if self._timer is None or deadline < self._timer.when():
            self._set_timer(deadline)

    async def ask(self, encode: Encode, *, timeout_ms: float) -> R | None:
        """Send and wait; None: no answer in time."""
        answer: asyncio.Future[R | None] = self._loop.create_future()
        self.send(encode, timeout_ms=timeout_ms, on_reply=partial(_settle_once, answer))
        return await answer

    # -- deadlines

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        now = self._loop.time()
        late = [number for number, each in self._open.items() if each.deadline <= now]
        if late and self._reopen_when_late:
            self._drop_call()
        else:
            self._unqueue(late)
            for number in late:
                self._settle(number, None)
        if self._open:
            self._set_timer(min(each.deadline for each in self._open.values()))

    def _settle(self, number: int, reply: R | None) -> None:
        waiting = self._open.pop(number, None)
        if waiting is None:
            return
        self._open_bytes -= waiting.size
        if reply is None and not waiting.written and waiting.on_unsent is not None:
            waiting.on_unsent()
        else:
            waiting.on_reply(reply)

    def _unqueue(self, late: list[int]) -> None:
        """What is given up before it was written must not be written later."""
        unwritten = {number for number in late if not self._open[number].written}
        if unwritten:
            kept = [
                (number, framed)
                for number, framed in zip(self._frame_numbers, self._frames, strict=True)
                if number not in unwritten
            ]
            self._frame_numbers = deque(number for number, _ in kept)
            self._frames = deque(framed for _, framed in kept)

    def _drop_call(self) -> None:
        """End the call, and with it all that is open. What is sent from now on waits for the next
        one.
        """
        call, self._call = self._call, None
        self._fail_all()
        if call is not None:
            call.cancel()

    def _fail_all(self) -> None:
        self._being_said.clear()
        self._frames.clear()
        self._frame_numbers.clear()
        for number in list(self._open):
            self._settle(number, None)

    # -- the tasks

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self._some_frames()
                opened = self._loop.time()
                await self._serve_call()
                pause = opened + RECONNECT_MS / 1000 - self._loop.time()
                await asyncio.sleep(max(0.0, pause))
        finally:
            self._fail_all()
            if self._timer is not None:
                self._timer.cancel()
            if self._channel is not None:
                await self._channel.close()
                await _calls_ended(self._loop)

    async def _serve_call(self) -> None:
        """One call, from its opening to its end."""
        call = self._call = (await self._open_call())()
        _open_calls[self._loop] = _open_calls.get(self._loop, 0) + 1
        try:
            # No task of this group may fail: Python 3.11 then takes its parent for cancelled.
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(self._write(call), name=f"write to {self.address}")
                await self._read(call)
                writer.cancel()
        finally:
            _open_calls[self._loop] -= 1
            if self._call is call:
                self._drop_call()

    async def _open_call(self) -> _OpenCall:
        """On the channel that there is, unless the address now leads elsewhere."""
        target = self._resolve(self.address)
        if self._channel is not None and target != self._target:
            await self._channel.close()
            self._channel = None
        if self._channel is None:
            self._target = target
            self._channel = open_channel(target, options=self._channel_options)
        open_call: _OpenCall = self._channel.stream_stream(self._method)
        return open_call

    async def _some_frames(self) -> None:
        while not self._frames:
            self._queued.clear()
            await self._queued.wait()

    async def _write(self, call: _Call) -> None:
        """Until the call is over; a write that fails ends it, and the reader hears of that."""
        try:
            while self._call is call:
                await self._some_frames()
                # Before there is a connection nothing has been written, whatever becomes of it.
                await _unless_over(call.wait_for_connection())
                while self._frames and self._call is call:
                    await _unless_over(call.write(self._take_message()))
                    self._end_silent()
        except _CallOver as over:
            logger.debug("the stream to %s ended: %s", self.address, over)
            call.cancel()

    def _take_message(self) -> bytes:
        queued = len(self._frames)
        message = take_message(self._frames)
        for _ in range(queued - len(self._frames)):
            number = self._frame_numbers.popleft()
            if number in self._open:
                self._open[number].written = True
                if self._open[number].is_silent:
                    self._being_said.append(number)
        return message

    def _end_silent(self) -> None:
        said, self._being_said = self._being_said, []
        for number in said:
            self._settle(number, None)

    async def _read(self, call: _Call) -> None:
        try:
            while isinstance(message := await _unless_over(call.read()), bytes):
                for reply in self._parse(message):
                    self._take_reply(reply)
        except (_CallOver, DecodeError) as over:
            logger.debug("the stream to %s ended: %s", self.address, over)

    def _take_reply(self, reply: R) -> None:
        if reply.correlation_id in self._open:
            self._settle(reply.correlation_id, reply)
        elif self._on_stray is not None:
            self._on_stray(reply)


T = TypeVar("T")

_open_calls: "WeakKeyDictionary[asyncio.AbstractEventLoop, int]" = WeakKeyDictionary()


async def _calls_ended(loop: asyncio.AbstractEventLoop) -> None:
    """Until gRPC is done with the calls of this loop that were cancelled.

    A call that is cancelled looks over at once, but the library hears of it later, through a queue
    that all event loops of the process share. If the loop of the call is closed by then, whichever
    loop empties the queue fails ("Event loop is closed"), and leaves there what was for itself.
    A call that gRPC still waits for has a task; the calls of others, if they use gRPC on this loop
    too, cannot be told from ours, so this wait has an end.
    """
    give_up = loop.time() + CALLS_END_SECONDS
    while loop.time() < give_up:
        waiting = [task for task in asyncio.all_tasks(loop) if _watches_call(task)]
        if len(waiting) <= _open_calls.get(loop, 0):
            return
        left = give_up - loop.time()
        await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)


def _watches_call(task: "asyncio.Task[object]") -> bool:
    name = getattr(task.get_coro(), "__name__", "")
    return name == "_handle_status_once_received"


def _settle_once(answer: "asyncio.Future[T]", result: T) -> None:
    if not answer.done():  # whoever asked may have given up
        answer.set_result(result)


async def _unless_over(operation: Awaitable[T]) -> T:
    """A read or write of a call. That of a call which was cancelled looks like a cancelled task,
    and must not be taken for one; and where the task was cancelled while the call was still being
    set up, gRPC keeps that to itself.
    """
    try:
        result = await operation
    except asyncio.CancelledError:
        _raise_if_cancelled()
        raise _CallOver("cancelled") from None
    except _ENDINGS as error:
        _raise_if_cancelled()
        raise _CallOver(str(error)) from error
    _raise_if_cancelled()
    return result


def _raise_if_cancelled() -> None:
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
