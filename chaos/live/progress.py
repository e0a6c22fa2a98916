"""What a drill looks like at this moment: a few rows, twice a second, while it runs."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from chaos.live.stage import TOPIC, Stage

EVERY_SECONDS = 0.5

Show = Callable[[Mapping[str, str]], None]
"""Rows by name; none: it is over."""


@contextmanager
def shown(stage: Stage, show: Show) -> Iterator[None]:
    """A thread shows the stage until the with statement is left."""
    over = threading.Event()
    meter = Meter(stage)

    def run() -> None:
        while not over.wait(EVERY_SECONDS):
            show(meter.rows())

    thread = threading.Thread(target=run, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        show({})


class Meter:
    """Of a stage that is open."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._begun = self._seen_at = time.monotonic()
        self._seen = 0

    def rows(self) -> dict[str, str]:
        stage, load, now = self._stage, self._stage.load, time.monotonic()
        acked = load.acknowledged
        rate = (acked - self._seen) / max(now - self._seen_at, 0.001)
        self._seen, self._seen_at = acked, now
        reign = stage.watcher.newest()
        gap = load.write_gap(now - self._window(now), now)
        return {
            "elapsed": f"{now - self._begun:.0f} s",
            "controller": f"{reign.leader}, epoch {reign.epoch}" if reign else "none",
            "partitions": "  ".join(self._partitions()),
            "acknowledged": f"{acked}, {rate:.0f}/s, {load.errors.total()} errors",
            "longest gap": f"{gap:.2f} s in the last {self._window(now):.0f} s",
        }

    def _window(self, now: float) -> float:
        return min(10.0, max(1.0, now - self._begun))

    def _partitions(self) -> Iterator[str]:
        replicas = self._stage.options.replication_factor
        for (_, number), view in sorted(self._stage.watcher.partitions(TOPIC).items()):
            leader = self._stage.cluster.name_of(view.leader) if view.leader >= 0 else "none"
            yield f"{number}: {leader} ({len(view.isr)} of {replicas} in sync)"
