"""How an admin looks at a cluster as a whole: its health, and what changes in it."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from kraftlog.admin_types import ConfigResource
from kraftlog.cluster_events import ClusterEvent, ClusterLook, compare
from kraftlog.cluster_health import (
    RED,
    Belief,
    ClusterHealth,
    Grade,
    Problem,
    judge_brokers,
    judge_partitions,
    judge_quorum,
    needed_in_sync,
    short_topics,
)
from kraftlog.durations import Duration, to_seconds
from kraftlog.errors import ConfigError, InvalidRequest, KraftError, TimeoutError_

if TYPE_CHECKING:
    from kraftlog.aio.admin import AsyncAdmin

HEALTH_TIMEOUT = "5s"
"""A cluster that does not answer for so long is not healthy."""
HEALTH_PAUSE_SECONDS = 0.2
LAST_LOOK_SECONDS = 1.0
"""So much time a look has at least: one that was hurried would find that nobody answers."""
WATCH_EVERY = "500ms"


async def ask_health(admin: "AsyncAdmin", within: Duration) -> ClusterHealth:
    """Ask every controller what it believes, and the active one about the rest. That a cluster does
    not answer is a problem of it, and no error.
    """
    deadline = time.monotonic() + to_seconds(within, "timeout")
    problems: list[Problem] = []
    try:
        addresses = await admin.controllers(timeout=_left(deadline))
        asked = [_belief(admin, each, _left(deadline)) for each in addresses]
        beliefs = dict(zip(addresses, await asyncio.gather(*asked), strict=True))
        problems += judge_quorum(beliefs)
        problems += judge_brokers(await admin.describe_cluster(timeout=_left(deadline)))
        topics = await admin.describe_topics(timeout=_left(deadline))
        short = short_topics(topics.ok.values())
        needed = await _needed_in_sync(admin, short, _left(deadline)) if short else {}
        problems += judge_partitions(topics.ok.values(), needed)
    except (ConfigError, InvalidRequest):
        raise
    except KraftError as error:
        problems.append(Problem(RED, error.message, error.hint or "kraftctl quorum why"))
    return ClusterHealth(tuple(problems))


async def _needed_in_sync(
    admin: "AsyncAdmin", topics: Iterable[str], seconds: float
) -> dict[str, int]:
    wanted = [ConfigResource.topic(name) for name in topics]
    return needed_in_sync((await admin.describe_configs(wanted, timeout=seconds)).ok)


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


async def _belief(admin: "AsyncAdmin", address: str, seconds: float) -> Belief:
    try:
        return await admin.describe_quorum(address, timeout=seconds)
    except KraftError as error:
        return error


async def wait_for_grade(
    admin: "AsyncAdmin", grade: Grade | str, within: Duration, stable: Duration
) -> ClusterHealth:
    wanted = _grade(grade)
    seconds, stable_seconds = to_seconds(within, "timeout"), to_seconds(stable, "stable")
    deadline = time.monotonic() + seconds
    since: float | None = None
    while True:
        limit = max(_left(deadline), LAST_LOOK_SECONDS)
        health = await ask_health(admin, min(limit, to_seconds(HEALTH_TIMEOUT, "timeout")))
        now = time.monotonic()
        if not health.grade.is_as_good_as(wanted):
            since = None
        elif since is None:
            since = now
        if since is not None and now - since >= stable_seconds:
            return health
        if now >= deadline:
            raise TimeoutError_(f"the cluster is not {wanted} within {seconds:g} s: {health}")
        await asyncio.sleep(min(HEALTH_PAUSE_SECONDS, _left(deadline)))


def _grade(grade: Grade | str) -> Grade:
    try:
        return Grade(grade)
    except ValueError:
        raise ConfigError(
            f"grade = {grade!r} is not known", hint=f"use {', '.join(Grade)}"
        ) from None


class Watch:
    """Looks again and again, and tells what has changed since the last time."""

    def __init__(self, every: Duration) -> None:
        self._seconds = to_seconds(every, "every")
        self._last: ClusterLook | None = None

    async def begin(self, admin: "AsyncAdmin") -> None:
        self._last = await self._look(admin)

    async def next_events(self, admin: "AsyncAdmin") -> list[ClusterEvent]:
        """What changes next, as soon as something does."""
        while True:
            if self._last is None:
                await self.begin(admin)
            await asyncio.sleep(self._seconds)
            before, self._last = self._last, await self._look(admin)
            found = list(compare(before, self._last)) if before is not None else []
            if found:
                return found

    async def events(self, admin: "AsyncAdmin") -> AsyncIterator[ClusterEvent]:
        while True:
            for event in await self.next_events(admin):
                yield event

    async def _look(self, admin: "AsyncAdmin") -> ClusterLook:
        cluster = await admin.describe_cluster()
        last = self._last
        if last is not None and last.cluster.offset == cluster.offset:
            return ClusterLook(cluster, last.topics)
        return ClusterLook(cluster, (await admin.describe_topics()).ok)
