"""A Toxiproxy server as drills use it: the embedded one, or the real one.

    with ToxiServer.start("embedded", seed=7) as server:
        listen = server.create("c1__c2", "127.0.0.1:9001")
        server.add_toxic("c1__c2", "latency", latency=100)
        server.cut("c1__c2")
        server.reset()

Inputs that would kill the real server, or that it could never be asked for again, are refused
here, for both.
"""

import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterator
from typing import Literal, Self

import toxiproxy
from toxiproxy.api import APIConsumer

from chaos.toxiproxy import real
from chaos.toxiproxy._client import ToxiproxyRefused, ToxiproxyUnreachable, client
from chaos.toxiproxy.names import name_problem
from chaos.toxiproxy.toxics import ATTRIBUTES, INT64_MAX, INT64_MIN, STREAMS, problem
from kraftlog.errors import ConfigError
from kraftlog.local.layout import HOST, free_port
from kraftlog.local.process import NodeProcess

__all__ = ["Backend", "ToxiServer", "ToxiproxyRefused", "ToxiproxyUnreachable"]

Backend = Literal["embedded", "toxiproxy"]

READY_SECONDS = 60.0
LISTEN_SECONDS = 5.0
_POLL_SECONDS = 0.02


class ToxiServer:
    """One server process. Calls come from any thread, one at a time in each process."""

    def __init__(self, process: NodeProcess, directory: str) -> None:
        self._process = process
        self._directory = directory
        self._address = (HOST, 0)
        self._ports: set[int] = set()
        self._proxies: dict[str, toxiproxy.Proxy] = {}
        self.pid = process.pid

    @classmethod
    def start(cls, backend: Backend, *, seed: int = 0) -> Self:
        """Spawn it, and wait until it answers. The real server has no use for a seed."""
        if backend == "embedded":
            module, arguments = "chaos.toxiproxy", ["--port", "0", "--seed", str(seed)]
        elif backend == "toxiproxy":
            module, arguments = "chaos.toxiproxy.real", ["--binary", real.find_binary()]
        else:
            raise ConfigError(
                f"there is no backend {backend!r}", hint="there are embedded and toxiproxy"
            )
        directory = tempfile.mkdtemp(prefix="kraftlog-toxiproxy-")
        process = NodeProcess("toxiproxy", module, arguments, f"{directory}/toxiproxy.log")
        process.start()
        server = cls(process, directory)
        try:
            server._await_ready()
        except BaseException:
            server.close()
            raise
        return server

    def _await_ready(self) -> None:
        """Its one line says where; then GET /version says that it is there."""
        deadline = time.monotonic() + READY_SECONDS
        while (said := self._announced()) is None:
            if not self._process.is_running:
                raise self._process.failure("ended before it was ready")
            if time.monotonic() > deadline:
                raise self._process.failure(f"was not ready within {READY_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)
        address, self.pid = said
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self.version()

    def _announced(self) -> tuple[str, int] | None:
        for line in self._process.log().splitlines(keepends=True):
            if line.startswith('{"address"') and line.endswith("\n"):
                said = json.loads(line)
                return str(said["address"]), int(said["pid"])
        return None

    @property
    def address(self) -> str:
        """Of its API."""
        return f"{self._address[0]}:{self._address[1]}"

    @contextlib.contextmanager
    def _client(self) -> Iterator[toxiproxy.Toxiproxy]:
        with client(*self._address) as found:
            yield found

    def version(self) -> str:
        with self._client():
            return str(APIConsumer.get("/version").json()["version"])

    def create(self, name: str, upstream: str, avoid: Collection[int] = ()) -> str:
        """A proxy before an address; where it listens, which stays so while it is cut. `avoid` are
        ports that somebody shall have later.

        The port is not one that systems hand out to clients: such a one could be taken by a
        connection of anybody's while the proxy is cut.
        """
        _check_name(name)
        _check_address(upstream)
        deadline = time.monotonic() + LISTEN_SECONDS
        while True:
            port = free_port(self._ports | set(avoid))
            try:
                with self._client() as server:
                    proxy = server.create(upstream, name, f"{HOST}:{port}", enabled=True)
            except ToxiproxyRefused as error:
                if error.status != 500 or time.monotonic() > deadline:
                    raise
                continue
            except toxiproxy.exceptions.ProxyExists:
                raise ConfigError(
                    f"there is a proxy {name!r} already", hint="choose another name"
                ) from None
            self._ports.add(port)
            self._proxies[name] = proxy
            return str(proxy.listen)

    def cut(self, name: str) -> None:
        """What is open ends, what is tried is refused. Its toxics and its port stay."""
        proxy = self._proxy(name)
        with self._client():
            proxy.disable()

    def enable(self, name: str) -> None:
        proxy = self._proxy(name)
        deadline = time.monotonic() + LISTEN_SECONDS
        while True:
            try:
                with self._client():
                    proxy.enable()
            except ToxiproxyRefused as error:
                if error.status != 500 or time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_SECONDS)
            else:
                return

    def add_toxic(
        self,
        name: str,
        kind: str,
        stream: str = "downstream",
        *,
        toxic: str | None = None,
        toxicity: float = 1.0,
        **attributes: int,
    ) -> str:
        """Poison a proxy, live connections too; the name of the toxic."""
        proxy = self._proxy(name)
        chosen = toxic or f"{kind}_{stream}"
        _check_name(chosen)
        _check_toxic(kind, stream, toxicity, attributes)
        with self._client():
            proxy.add_toxic(
                type=kind, stream=stream, name=chosen, toxicity=toxicity, attributes=attributes
            )
        return chosen

    def remove_toxic(self, name: str, toxic: str) -> None:
        """What it held back goes on at once; a timeout takes its connections with it."""
        proxy = self._proxy(name)
        _check_name(toxic)
        with self._client():
            proxy.destroy_toxic(toxic)

    def toxics(self, name: str) -> dict[str, str]:
        """Their names, and what kind each is."""
        proxy = self._proxy(name)
        with self._client():
            return {each.name: each.type for each in proxy.toxics().values()}

    def reset(self) -> None:
        """All proxies enabled, all toxics gone."""
        with self._client() as server:
            server.reset()

    def delete_all(self) -> None:
        """All proxies gone, with their connections."""
        with self._client() as server:
            server.destroy_all()
        self._proxies.clear()

    def _proxy(self, name: str) -> toxiproxy.Proxy:
        if name not in self._proxies:
            raise ConfigError(
                f"there is no proxy {name!r}", hint=f"there are {sorted(self._proxies)}"
            )
        return self._proxies[name]

    def close(self) -> None:
        """The process is gone when this returns, the real server too."""
        if self.pid != self._process.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # its keeper reaps it, and ends
            with contextlib.suppress(Exception):
                self._process.wait(LISTEN_SECONDS)
        self._process.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _check_name(name: str) -> None:
    if found := name_problem(name):
        raise ConfigError(found)


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ConfigError(f"{address!r} is no address", hint="it looks like 127.0.0.1:9092")


def _check_toxic(kind: str, stream: str, toxicity: float, attributes: dict[str, int]) -> None:
    if kind not in ATTRIBUTES:
        raise ConfigError(f"there is no toxic {kind!r}", hint=f"there are {sorted(ATTRIBUTES)}")
    if stream not in STREAMS:
        raise ConfigError(f"there is no stream {stream!r}", hint="upstream or downstream")
    if not 0.0 <= toxicity <= 1.0:
        raise ConfigError(f"toxicity {toxicity} is no share", hint="it is from 0 to 1")
    for name, value in attributes.items():
        if name not in ATTRIBUTES[kind]:
            known = ", ".join(ATTRIBUTES[kind]) or "none"
            raise ConfigError(f"{kind} has no attribute {name!r}", hint=f"there are: {known}")
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{kind}: {name} {value!r} must be an integer")
        if not INT64_MIN <= value <= INT64_MAX:
            raise ConfigError(f"{kind}: {name} {value} does not fit 64 bits")
    if found := problem(kind, attributes):
        raise ConfigError(found)
