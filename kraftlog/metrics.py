"""Metrics in Prometheus' text form, and the small HTTP server that shows them.

    registry = Registry()
    commits = registry.counter("kraftlog_raft_commits_total", "Batches committed.")
    registry.gauge("kraftlog_raft_current_epoch", "The epoch.", lambda: core.epoch)
    commits.add()

A gauge is a function that is asked when somebody looks, so what is shown is never old and costs
nothing while nobody does. One thread writes and reads: that of the loop.
"""

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

from kraftlog._check import invariant
from kraftlog.errors import ConfigError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_BYTES_MAX = 8 << 10
REQUEST_SECONDS_MAX = 5.0

SECONDS_BUCKETS = (
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
)

Labels = Mapping[str, str]
Sample = tuple[str, float]
"""What stands behind the name of a metric (suffix and labels), and the value."""


class Counter:
    """Only grows."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        invariant(amount >= 0, "a counter goes down", amount=amount)
        self.value += amount

    def samples(self) -> list[Sample]:
        return [("", self.value)]


class CounterFamily:
    """A counter for each value of one label, made when it is first used."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._counters: dict[str, Counter] = {}

    def __getitem__(self, value: str) -> Counter:
        return self._counters.setdefault(value, Counter())

    def samples(self) -> list[Sample]:
        return [
            (labelled({self._label: value}), counter.value)
            for value, counter in sorted(self._counters.items())
        ]


class Histogram:
    """How often a value was up to each of some bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> list[Sample]:
        found: list[Sample] = []
        total = 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            found.append(("_bucket" + labelled({"le": bound}), total))
        return [*found, ("_sum", self._sum), ("_count", total)]


class Gauge:
    """Asked when somebody looks. More than one value: by their labels."""

    def __init__(self, read: Callable[[], float | Iterable[tuple[Labels, float]]]) -> None:
        self._read = read

    def samples(self) -> list[Sample]:
        found = self._read()
        if isinstance(found, int | float):
            return [("", float(found))]
        return [(labelled(labels), float(value)) for labels, value in found]


Metric = Counter | CounterFamily | Histogram | Gauge


class Registry:
    """Every metric of a process, each under a name of its own."""

    def __init__(self) -> None:
        self._metrics: dict[str, tuple[str, str, Metric]] = {}

    def counter(self, name: str, doc: str) -> Counter:
        counter = Counter()
        self._add(name, "counter", doc, counter)
        return counter

    def counters(self, name: str, doc: str, *, label: str) -> CounterFamily:
        family = CounterFamily(label)
        self._add(name, "counter", doc, family)
        return family

    def histogram(
        self, name: str, doc: str, bounds: Sequence[float] = SECONDS_BUCKETS
    ) -> Histogram:
        histogram = Histogram(bounds)
        self._add(name, "histogram", doc, histogram)
        return histogram

    def gauge(
        self, name: str, doc: str, read: Callable[[], float | Iterable[tuple[Labels, float]]]
    ) -> None:
        self._add(name, "gauge", doc, Gauge(read))

    def counter_of(
        self, name: str, doc: str, read: Callable[[], float | Iterable[tuple[Labels, float]]]
    ) -> None:
        """A counter that somebody keeps anyway."""
        self._add(name, "counter", doc, Gauge(read))

    def _add(self, name: str, kind: str, doc: str, metric: Metric) -> None:
        invariant(name not in self._metrics, "two metrics of one name", name=name)
        self._metrics[name] = (kind, doc, metric)

    def names(self) -> list[str]:
        return sorted(self._metrics)

    def text(self) -> str:
        """All of them, as Prometheus reads it."""
        lines: list[str] = []
        for name, (kind, doc, metric) in sorted(self._metrics.items()):
            lines += [f"# HELP {name} {doc}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{suffix} {_number(value)}" for suffix, value in metric.samples()]
        return "\n".join(lines) + "\n"


def labelled(labels: Labels) -> str:
    inner = ",".join(f'{key}="{_escape(value)}"' for key, value in sorted(labels.items()))
    return "{" + inner + "}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


# -- over HTTP


@contextlib.asynccontextmanager
async def serve_metrics(registry: Registry, address: str) -> AsyncIterator[int]:
    """Show the metrics at http://`address`/metrics; gives the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                await _answer(registry, reader, writer)
        writer.close()

    host, _, port = address.rpartition(":")
    try:
        server = await asyncio.start_server(
            answer, host.strip("[]"), int(port), limit=REQUEST_BYTES_MAX
        )
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address} for metrics: {error.strerror}",
            hint="another process may have the port: choose another",
        ) from None
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _answer(
    registry: Registry, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.write(_response("400 Bad Request", "this is no HTTP request\n"))
    else:
        words = head.split(b" ", 2)
        if words[:2] == [b"GET", b"/metrics"]:
            writer.write(_response("200 OK", registry.text()))
        else:
            writer.write(_response("404 Not Found", "GET /metrics is all there is\n"))
    await writer.drain()


def _response(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
