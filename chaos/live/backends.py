"""What stands on the edges of a cluster: Toxiproxy, our embedded twin of it, or nothing."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn

from chaos.live.edges import Proxies
from kraftlog.errors import ConfigError, NotYetSupported

PROCESS = "process"
TOXI = "toxi"
EMBEDDED = "embedded"
BACKENDS = (EMBEDDED, TOXI, PROCESS)


class NoProxies:
    """Every edge is direct: enough for drills that only signal processes."""

    pid: int | None = None

    def create(self, name: str, upstream: str, avoid: Collection[int] = ()) -> str:
        del name, avoid
        return upstream

    def cut(self, name: str) -> None:
        self._refuse(name)

    def enable(self, name: str) -> None:
        self._refuse(name)

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
        del kind, stream, toxic, toxicity, attributes
        self._refuse(name)

    def reset(self) -> None:
        """There is nothing to heal."""

    def _refuse(self, name: str) -> NoReturn:
        raise NotYetSupported(
            f"the edge {name} cannot be broken with backend {PROCESS}",
            hint="use --backend embedded",
        )


@contextmanager
def open_proxies(backend: str, seed: int) -> Iterator[tuple[Proxies, int | None]]:
    """The proxies, and the process that they live in."""
    if backend not in BACKENDS:
        raise ConfigError(f"{backend!r} is no backend", hint=f"use {', '.join(BACKENDS)}")
    if backend == PROCESS:
        yield NoProxies(), None
        return
    from chaos.toxiproxy.wrapper import ToxiServer  # noqa: PLC0415 - process needs none

    server = ToxiServer.start("toxiproxy" if backend == TOXI else "embedded", seed=seed)
    try:
        yield server, server.pid
    finally:
        server.close()
