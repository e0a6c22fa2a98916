"""The one policy of retries: what may be asked again, and after how long.

Whether a repeat is allowed is a property of the error (`kraftlog.error_codes`) and of the request:

    nothing happened   ask again, after a look at the metadata if that was the reason
    outcome unknown    ask again only if a repeat does no harm: reads, requests with an id,
                       batches with a sequence number
    anything else      the answer would be the same

The pause doubles from `first_ms` to `max_ms`, each time with a part of it at random, so that many
clients that lost the same broker do not come back at the same moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from kraftlog.clock import Clock
from kraftlog.errors import ErrorCode, InvalidMetadataError, KraftError

T = TypeVar("T")

JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts, in milliseconds."""

    first_ms: int = 50
    max_ms: int = 1_000

    def pause_ms(self, failures: int, dice: Random) -> float:
        """The pause after so many failures in a row."""
        doublings = min(failures - 1, 30)
        pause = min(self.first_ms * 2.0**doublings, self.max_ms)
        return pause * dice.uniform(1 - JITTER, 1 + JITTER)


def may_repeat(error: KraftError, *, harmless: bool) -> bool:
    """Whether the same request may be sent again. `harmless`: doing it twice is doing it once."""
    return error.retriable or (harmless and error.outcome_unknown)


def needs_new_view(error: KraftError) -> bool:
    """Whether our view of the cluster is what was wrong, or may be: a broker that does not answer,
    or cannot be reached, may no longer lead.
    """
    is_gone = error.code == ErrorCode.BROKER_NOT_AVAILABLE or error.outcome_unknown
    return is_gone or isinstance(error, InvalidMetadataError)


@dataclass(frozen=True, slots=True)
class Retry:
    """Asks until an answer comes or the time is over."""

    backoff: Backoff
    clock: Clock
    dice: Random

    async def run(
        self,
        attempt: Callable[[float], Awaitable[T]],
        *,
        timeout_ms: float,
        harmless: bool,
        on_failure: Callable[[KraftError], Awaitable[None]] | None = None,
    ) -> T:
        """The result of the first attempt that has one. An attempt is told how many milliseconds
        remain. When they are over, or a repeat is not allowed, the last error is raised.
        """
        deadline = self.clock.monotonic_ms() + timeout_ms
        failures = 0
        while True:
            try:
                return await attempt(max(deadline - self.clock.monotonic_ms(), 1))
            except KraftError as error:
                failures += 1
                error.attempts = failures
                pause_ms = self.backoff.pause_ms(failures, self.dice)
                remaining = deadline - self.clock.monotonic_ms()
                if not may_repeat(error, harmless=harmless) or remaining <= pause_ms:
                    raise
                if on_failure is not None:
                    await on_failure(error)
            await asyncio.sleep(pause_ms / 1000)
