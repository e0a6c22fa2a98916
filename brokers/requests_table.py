"""Every request on its way through a broker: bounded, timed and counted (R16).

The time of a request has four parts:

    queue    from the arrival of its message to the beginning of its turn
    local    in our own hands: checked, appended, read
    parked   waiting for other replicas, for records, or for its turn to be answered
    send     from the encoded reply to the transport having taken it

A request that took longer than `slow_ms`, not counting what it asked to wait, is named in the log
with these four.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kraftlog.apis import Api
from kraftlog.metrics import Labels, Registry

logger = logging.getLogger(__name__)

STAGES = ("queue", "local", "parked", "send")
SLOW_LOG_SECONDS = 1.0
"""At most one slow request of a kind is named in this time; the others are counted."""


class Entry:
    """One request. Times are seconds of a monotonic clock; 0: not come to that yet."""

    __slots__ = (
        "allowed_wait",
        "answered",
        "api",
        "arrived",
        "begun",
        "client_id",
        "correlation_id",
        "done",
        "failed",
        "returned",
    )

    def __init__(self, api: Api, arrived: float, begun: float) -> None:
        self.api = api
        self.client_id = ""
        self.correlation_id = 0
        self.allowed_wait = 0.0
        """How long it asked to be parked, in seconds."""
        self.failed = False
        self.arrived = arrived
        self.begun = begun
        self.returned = 0.0
        """When the handler was through with it, at first."""
        self.answered = 0.0
        """When its reply was there."""
        self.done = False

    def stages(self, sent: float) -> tuple[float, float, float, float]:
        """The four parts of its time."""
        answered = self.answered or sent
        returned = min(self.returned or answered, answered)
        return (
            self.begun - self.arrived,
            returned - self.begun,
            answered - returned,
            sent - answered,
        )


@dataclass(slots=True)
class _Totals:
    """What the requests of one kind came to."""

    requests: int = 0
    failed: int = 0
    open: int = 0
    slow: int = 0
    seconds: list[float] = field(default_factory=lambda: [0.0] * len(STAGES))
    named_at: float = -SLOW_LOG_SECONDS
    unnamed: int = 0
    """Slow ones that were not named in the log since then."""


class RequestTable:
    def __init__(self, slow_ms: int, now: Callable[[], float] = time.monotonic) -> None:
        self._slow_seconds = slow_ms / 1000
        self._now = now
        self._totals: dict[Api, _Totals] = {}

    def now(self) -> float:
        return self._now()

    @property
    def open(self) -> int:
        return sum(totals.open for totals in self._totals.values())

    def begin(self, api: Api, arrived: float) -> Entry:
        totals = self._totals.get(api)
        if totals is None:
            totals = self._totals[api] = _Totals()
        totals.requests += 1
        totals.open += 1
        return Entry(api, arrived, self._now())

    def finish(self, entry: Entry) -> None:
        """Its reply is out, or it needs none any more. Once per request."""
        if entry.done:
            return
        entry.done = True
        totals = self._totals[entry.api]
        totals.open -= 1
        totals.failed += entry.failed
        sent = self._now()
        for place, seconds in enumerate(entry.stages(sent)):
            totals.seconds[place] += seconds
        if sent - entry.arrived - entry.allowed_wait > self._slow_seconds:
            self._note_slow(entry, totals, sent)

    def _note_slow(self, entry: Entry, totals: _Totals, sent: float) -> None:
        totals.slow += 1
        if sent - totals.named_at < SLOW_LOG_SECONDS:
            totals.unnamed += 1
            return
        parts = zip(STAGES, entry.stages(sent), strict=True)
        logger.warning(
            "slow %s of client %r, correlation id %d: %.0f ms (%s)%s",
            entry.api.name,
            entry.client_id,
            entry.correlation_id,
            (sent - entry.arrived) * 1000,
            ", ".join(f"{stage} {seconds * 1000:.0f}" for stage, seconds in parts),
            f"; {totals.unnamed} more since the last such line" if totals.unnamed else "",
        )
        totals.named_at, totals.unnamed = sent, 0

    # -- for metrics

    def register(self, registry: Registry) -> None:
        registry.gauge(
            "kraftlog_requests_open",
            "Requests that are not answered yet.",
            lambda: self._by_api(lambda totals: totals.open),
        )
        registry.counter_of(
            "kraftlog_requests_total",
            "Requests that arrived.",
            lambda: self._by_api(lambda totals: totals.requests),
        )
        registry.counter_of(
            "kraftlog_request_errors_total",
            "Requests that were refused as a whole.",
            lambda: self._by_api(lambda totals: totals.failed),
        )
        registry.counter_of(
            "kraftlog_slow_requests_total",
            "Requests slower than slow.request.log.ms.",
            lambda: self._by_api(lambda totals: totals.slow),
        )
        registry.counter_of(
            "kraftlog_request_seconds_total",
            "Where the time of requests went.",
            self._stage_seconds,
        )

    def _by_api(self, read: Callable[[_Totals], float]) -> list[tuple[Labels, float]]:
        return [({"api": api.name}, read(totals)) for api, totals in self._totals.items()]

    def _stage_seconds(self) -> list[tuple[Labels, float]]:
        return [
            ({"api": api.name, "stage": stage}, seconds)
            for api, totals in self._totals.items()
            for stage, seconds in zip(STAGES, totals.seconds, strict=True)
        ]
