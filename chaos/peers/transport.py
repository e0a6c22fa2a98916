"""PySyncObj's messages over gRPC.

Each node holds one stream to each other node and sends on that alone, so that what it says arrives
in order. PySyncObj wants its callbacks on the thread that ticks: what gRPC's threads receive waits
in a queue, and a pipe wakes that thread.
"""

import contextlib
import os
import pickle
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, TypeAlias

import grpc
from pysyncobj.node import Node
from pysyncobj.pipe_notifier import PipeNotifier
from pysyncobj.transport import Transport

from kraftlog.connection import CHANNEL_OPTIONS
from kraftlog.resolver import resolver

SERVICE = "kraftlog.peer.Raft"
METHOD = "Messages"
PATH = f"/{SERVICE}/{METHOD}"
SENDER = "kraftlog-sender"
HELLO = b"hello"
WAITING_MAX = 10_000
RETRY_SECONDS = 0.1

_Waiting = queue.Queue[bytes | None]
_Messages: TypeAlias = "grpc.StreamStreamMultiCallable[bytes, bytes]"


class Owner(Protocol):
    """What is used of a SyncObj."""

    _poller: object


class Outgoing:
    """The stream to one node, opened again whenever it has ended."""

    def __init__(self, own_id: str, address: str, tell: Callable[[bool], None]) -> None:
        self._own_id = own_id
        self._address = address
        self._tell = tell
        self._stopped = threading.Event()
        self._waiting: _Waiting | None = None
        self._channel: grpc.Channel | None = None
        self._resolve = resolver(os.environ)
        self._thread = threading.Thread(target=self._run, name=f"to {address}", daemon=True)
        self._thread.start()

    def send(self, message: bytes) -> bool:
        """Whether it may arrive; never waits."""
        waiting = self._waiting
        if waiting is None:
            return False
        try:
            waiting.put_nowait(message)
        except queue.Full:
            return False
        return True

    def _run(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(grpc.RpcError, ValueError):  # ValueError: closed meanwhile
                self._hold()
            self._stopped.wait(RETRY_SECONDS)

    def _hold(self) -> None:
        """One stream, from its beginning to its end."""
        waiting: _Waiting = queue.Queue(WAITING_MAX)
        with grpc.insecure_channel(self._resolve(self._address), CHANNEL_OPTIONS) as self._channel:
            messages: _Messages = self._channel.stream_stream(PATH)
            call = messages(_until_none(waiting), metadata=((SENDER, self._own_id),))
            try:
                next(call)  # the other's hello: it is there
                self._waiting = waiting
                self._tell(True)
                for _ in call:
                    pass
            finally:
                self._waiting = None
                waiting.put(None)
                self._tell(False)

    def close(self) -> None:
        self._stopped.set()
        if self._channel is not None:
            self._channel.close()
        self._thread.join()


def _until_none(waiting: _Waiting) -> Iterator[bytes]:
    while (message := waiting.get()) is not None:
        yield message


class GrpcTransport(Transport):  # type: ignore[misc]  # it carries no types
    """In the place of PySyncObj's TCPTransport; its server is the node's own."""

    def __init__(self, owner: Owner, own: Node, others: set[Node]) -> None:
        super().__init__(owner, own, others)
        self._own = own
        self._nodes = {node.id: node for node in others}
        self._inbox: deque[Callable[[], None]] = deque()
        self._notifier = PipeNotifier(owner._poller, self._deliver)  # noqa: SLF001 - as its own
        self._outgoing = {
            node: Outgoing(own.id, node.id, partial(self._changed, node)) for node in others
        }

    def _post(self, work: Callable[[], None]) -> None:
        """To be done on the thread that ticks."""
        self._inbox.append(work)
        with contextlib.suppress(BlockingIOError):  # the pipe is full: it is woken already
            self._notifier.notify()

    def _deliver(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def _changed(self, node: Node, is_up: bool) -> None:
        told = self._onNodeConnected if is_up else self._onNodeDisconnected
        self._post(partial(told, node))

    def send(self, node: Node, message: object) -> bool:
        outgoing = self._outgoing.get(node)
        return outgoing is not None and outgoing.send(pickle.dumps(message))

    def receive(self, incoming: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """The other end of another node's stream."""
        sender = dict(context.invocation_metadata()).get(SENDER)
        node = self._nodes.get(sender)
        if node is None:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{sender!r} is none of our nodes")
        yield HELLO
        for raw in incoming:
            message = pickle.loads(raw)  # noqa: S301 - what PySyncObj speaks, on loopback
            self._post(partial(self._onMessageReceived, node, message))

    def destroy(self) -> None:
        for outgoing in self._outgoing.values():
            outgoing.close()
