"""Ways between nodes that can be closed: each leads to one address, through a port of its own.

What comes over a closed way waits, and so does whoever dials: as if packets were lost, for TCP
sends them again once the way is open. So nobody is told that anything is wrong.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterable

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 16
JOIN_SECONDS = 5.0

Edge = tuple[str, str]
"""From whom to whom."""


class Ways:
    """All of one cluster, served by a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ways: dict[Edge, _Way] = {}
        self._thread = threading.Thread(target=self._run, name="kraftlog-ways", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as self._connections:
            await self._stop.wait()
            for way in self._ways.values():
                way.close()

    def add(self, edge: Edge, address: str) -> str:
        """The address that leads to this one; the same again for an edge that is there."""
        work = asyncio.run_coroutine_threadsafe(self._add(edge, address), self._loop)
        return work.result()

    async def _add(self, edge: Edge, address: str) -> str:
        if edge not in self._ways:
            self._ways[edge] = _Way(address, self._connections)
        return self._ways[edge].address

    def shut(self, edges: Iterable[Edge]) -> None:
        """Nothing goes over these any more."""
        asyncio.run_coroutine_threadsafe(self._set(list(edges), is_open=False), self._loop).result()

    def open_all(self) -> None:
        work = self._set(list(self._ways), is_open=True)
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _set(self, edges: Iterable[Edge], *, is_open: bool) -> None:
        for edge in edges:
            is_passable = self._ways[edge].is_open
            (is_passable.set if is_open else is_passable.clear)()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(JOIN_SECONDS)


class _Way:
    """Sockets of our own: a server of asyncio that closes forgets whom it was just accepting."""

    def __init__(self, address: str, tasks: asyncio.TaskGroup) -> None:
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._tasks = tasks
        self.is_open = asyncio.Event()
        self.is_open.set()
        self._listener = socket.create_server((HOST, 0))
        self._listener.setblocking(False)
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._listener, self._accept)

    @property
    def address(self) -> str:
        return f"{HOST}:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for connection in self._connections:
            connection.cancel()

    def _accept(self) -> None:
        try:
            near, _ = self._listener.accept()
        except OSError:
            return  # whoever dialled has gone
        near.setblocking(False)
        connection = self._tasks.create_task(self._carry(near))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        connection.add_done_callback(lambda _: near.close())  # also if it never began

    async def _carry(self, near: socket.socket) -> None:
        """One connection, until both ends have ended it, or one is broken."""
        await self.is_open.wait()
        with socket.socket() as far, contextlib.suppress(OSError):
            far.setblocking(False)
            await self._loop.sock_connect(far, self._target)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._pump(near, far))
                    tasks.create_task(self._pump(far, near))
            except* OSError:
                pass  # broken on one side: so is it on the other

    async def _pump(self, source: socket.socket, target: socket.socket) -> None:
        while data := await self._loop.sock_recv(source, CHUNK_BYTES):
            await self.is_open.wait()
            await self._loop.sock_sendall(target, data)
        await self.is_open.wait()
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)  # not connected any more: it has ended as well
