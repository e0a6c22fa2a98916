"""Topics that come to be because somebody asked for them (auto.create.topics.enable, R22)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kraftlog.errors import KraftError, ThrottledError, TopicExists

logger = logging.getLogger(__name__)

CREATING_MAX = 100
"""So many topics are created at a time at the wish of clients; one more is refused."""


@dataclass(frozen=True, slots=True)
class Created:
    """What the controller made of it: the offset at which all is committed, and the refusals."""

    offset: int
    errors: Mapping[str, KraftError] = field(default_factory=dict)


Create = Callable[[Sequence[str]], Awaitable[Created]]
WaitApplied = Callable[[int], Awaitable[None]]
"""Returns when this broker has applied the metadata up to an offset, or after a while."""


class TopicCreator:
    def __init__(self, create: Create, wait_applied: WaitApplied) -> None:
        self._create = create
        self._wait_applied = wait_applied
        self._creating: dict[str, asyncio.Future[KraftError | None]] = {}

    async def create(self, names: Sequence[str]) -> dict[str, KraftError]:
        """Create topics with the defaults of the cluster; returns those that could not be, and why.

        When it returns this broker knows the new topics, unless it lags behind.
        """
        wanted = list(dict.fromkeys(names))
        fresh = [name for name in wanted if name not in self._creating]
        if len(self._creating) + len(fresh) > CREATING_MAX:
            error = ThrottledError(f"{len(self._creating)} topics are being created already")
            return dict.fromkeys(wanted, error)
        loop = asyncio.get_running_loop()
        for name in fresh:
            self._creating[name] = loop.create_future()
        waiting = {name: self._creating[name] for name in wanted}
        if fresh:
            await self._create_fresh(fresh)
        outcomes = {name: await future for name, future in waiting.items()}
        return {name: error for name, error in outcomes.items() if error is not None}

    async def _create_fresh(self, names: Sequence[str]) -> None:
        errors: dict[str, KraftError] = {}
        try:
            created = await self._create(names)
            errors.update(created.errors)
            await self._wait_applied(created.offset)
            logger.info("created topics %s", [name for name in names if name not in errors])
        except KraftError as error:
            errors.update(dict.fromkeys(names, error))
        finally:
            for name in names:
                self._settle(self._creating.pop(name), errors.get(name))

    def _settle(self, waiting: asyncio.Future[KraftError | None], error: KraftError | None) -> None:
        if not waiting.done():
            # If it exists, somebody else was faster.
            waiting.set_result(None if isinstance(error, TopicExists) else error)
