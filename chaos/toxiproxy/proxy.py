"""A proxy: a listener, its connections, and the toxics on them."""

import asyncio
import contextlib
import random
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from chaos.toxiproxy.addresses import listen_error, resolve, split
from chaos.toxiproxy.buffers import CHUNK_BYTES
from chaos.toxiproxy.link import Link, StartTask
from chaos.toxiproxy.toxics import STREAMS, Stream, Toxic

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_WRITE_BUFFER_BYTES = 64 << 10


class Endpoint(asyncio.BufferedProtocol):
    """One socket: the source of one link and the sink of the other."""

    def __init__(self) -> None:
        self.outward: Link | None = None
        self.inward: Link | None = None
        self.is_lost = False
        self._resets = False
        self._is_held = False
        self._buffer = memoryview(bytearray(CHUNK_BYTES))
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
            transport.pause_reading()  # until there is somebody to give it to

    def join(self, outward: Link, inward: Link) -> None:
        self.outward, self.inward = outward, inward
        inward.exit.on_change = self._pump
        if self.is_lost:
            self.connection_lost(None)
            return
        self.look_for_room()
        self._pump()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - Toxiproxy reads 32 KiB
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.outward is not None:
            self.outward.feed(bytes(self._buffer[:nbytes]))
            self.look_for_room()

    def look_for_room(self) -> None:
        """Read on, or stop reading until there is room."""
        if self.outward is None or self._transport is None:
            return
        entry = self.outward.entry
        if entry.is_full and not entry.is_closed:
            entry.on_room = self.look_for_room
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        if self.outward is not None:
            self.outward.end()
        return True  # the end reaches the other side through the toxics, and that one closes us

    def pause_writing(self) -> None:
        self._is_held = True

    def resume_writing(self) -> None:
        self._is_held = False
        self._pump()

    def _pump(self) -> None:
        if self.inward is None or self._transport is None:
            return
        waiting = self.inward.exit
        while len(waiting) and not self._is_held:
            data = waiting.pop().data
            self.inward.bytes_sent += len(data)
            self._transport.write(data)
        if waiting.is_closed and not len(waiting):
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - its end is enough
        self.is_lost = True
        if self.inward is not None:
            self.inward.kill()
        if self.outward is not None:
            self.outward.end()

    def reset_on_close(self) -> None:
        if self._transport is not None and not self.is_lost:
            sock: socket.socket = self._transport.get_extra_info("socket")
            self._resets = True
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)

    def close(self) -> None:
        if self._transport is None:
            return
        if self._resets:
            self._transport.abort()
        else:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


@dataclass(slots=True, eq=False)
class Connection:
    client: Endpoint
    server: Endpoint
    links: dict[Stream, Link]

    @property
    def is_over(self) -> bool:
        return self.client.is_lost and self.server.is_lost

    def abort(self) -> None:
        for endpoint in (self.client, self.server):
            endpoint.abort()


class _Accepted(Endpoint):
    """A client's side; its proxy finds it the other one."""

    def __init__(self, proxy: "Proxy") -> None:
        super().__init__()
        self._proxy = proxy

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._proxy.accepted(self)


@dataclass(slots=True, eq=False)
class Proxy:
    name: str
    listen: str
    upstream: str
    start_task: StartTask
    dice: random.Random
    is_enabled: bool = False
    chains: dict[Stream, list[Toxic]] = field(
        default_factory=lambda: {stream: [] for stream in STREAMS}
    )
    connections: set[Connection] = field(default_factory=set)
    bytes_received: Counter[Stream] = field(default_factory=Counter)
    bytes_sent: Counter[Stream] = field(default_factory=Counter)
    _server: asyncio.Server | None = None
    _dialing: set[Endpoint] = field(default_factory=set)

    def toxics(self) -> Iterator[Toxic]:
        for stream in STREAMS:
            yield from self.chains[stream]

    def find_toxic(self, name: str) -> Toxic | None:
        return next((toxic for toxic in self.toxics() if toxic.name == name), None)

    async def differs(self, listen: str, upstream: str) -> bool:
        """Whether it would have to start again; an equal address by another name is equal."""
        return self.listen != await resolve(listen) or self.upstream != upstream

    async def start(self) -> None:
        """Listen. OSError says why not, in Toxiproxy's words."""
        if self.is_enabled:
            return
        address = await resolve(self.listen)
        host, port = split(address)
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Accepted(self), host, int(port))
        except OSError as error:
            raise listen_error(address, error) from None
        port = self._server.sockets[0].getsockname()[1]
        self.listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.is_enabled = True

    def stop(self) -> None:
        """Refuse connections, and drop those there are. The toxics stay."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.is_enabled = False
        for endpoint in self._dialing:
            endpoint.abort()
        for connection in self.connections:
            connection.abort()
        self._dialing.clear()

    async def update(self, listen: str, upstream: str, *, enabled: bool) -> None:
        if await self.differs(listen, upstream):
            self.stop()
            self.listen, self.upstream = listen, upstream
        if enabled:
            await self.start()
        else:
            self.stop()

    def accepted(self, client: Endpoint) -> None:
        self._dialing.add(client)
        self.start_task(self._dial(client))

    async def _dial(self, client: Endpoint) -> None:
        """Toxiproxy accepts first; a client of a dead server sees an end, not a refusal."""
        try:
            host, port = split(self.upstream)
            loop = asyncio.get_running_loop()
            _, server = await loop.create_connection(Endpoint, host, int(port))
        except (OSError, ValueError):
            client.close()
            self._dialing.discard(client)
            return
        if client not in self._dialing:  # stopped meanwhile
            server.abort()
            return
        self._dialing.discard(client)
        self._connect(client, server)

    def _connect(self, client: Endpoint, server: Endpoint) -> None:
        sources: dict[Stream, Endpoint] = {"upstream": client, "downstream": server}
        links = {
            stream: Link(
                stream,
                self.start_task,
                self.dice,
                on_entry=source.look_for_room,
                on_end=self._count,
            )
            for stream, source in sources.items()
        }
        self.connections = {one for one in self.connections if not one.is_over}
        self.connections.add(Connection(client, server, links))
        if any(toxic.kind == "reset_peer" for toxic in self.toxics()):
            client.reset_on_close()
            server.reset_on_close()
        for stream, link in links.items():
            link.begin(self.chains[stream])
        client.join(links["upstream"], links["downstream"])
        server.join(links["downstream"], links["upstream"])

    def _count(self, link: Link) -> None:
        """Like Toxiproxy, when a link ends and not before."""
        self.bytes_received[link.stream] += link.bytes_received
        self.bytes_sent[link.stream] += link.bytes_sent

    def _links(self, toxic: Toxic) -> Iterator[Link]:
        for connection in self.connections:
            if not connection.is_over:
                yield connection.links[toxic.direction]

    def add_toxic(self, toxic: Toxic) -> None:
        self.chains[toxic.direction].append(toxic)
        for link in self._links(toxic):
            link.add(toxic)

    def toxic_changed(self, toxic: Toxic) -> None:
        for link in self._links(toxic):
            link.update(toxic)

    def remove_toxic(self, toxic: Toxic) -> None:
        with contextlib.suppress(ValueError):
            self.chains[toxic.direction].remove(toxic)
        for link in self._links(toxic):
            link.remove(toxic)

    def reset_toxics(self) -> None:
        for toxic in list(self.toxics()):
            self.remove_toxic(toxic)
