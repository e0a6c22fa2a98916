"""The cleaner: keeps the compacted logs of a process compact, the dirtiest first.

Its owner calls `clean_dirtiest` again and again from one thread, with every log and how far each
has been cleaned, and stores what comes back: the cleaner-offset-checkpoint of a log directory is
that table. When a log is cut, the owner lowers its entry to the new end: what is written there next
is dirty.

A log that cannot be cleaned must not hold up the others. One that is damaged is left alone from
then on, with the reason for people to see; after an error that may pass, like a full disk, it is
tried again a while later.
"""

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kraftlog import config_keys as keys
from kraftlog.config import Config
from kraftlog.errors import ConfigError, CorruptRecord, KraftError, LogDamaged
from storage.cleanable import Cleanable, find_cleanable
from storage.compaction import CleanOptions, CleanResult, clean
from storage.log import Log
from storage.throttle import Throttle

logger = logging.getLogger(__name__)

RETRY_MS = 60_000


@dataclass(frozen=True, slots=True)
class Cleaned:
    log: Log
    result: CleanResult


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    retry_at_ms: int | None


class Cleaner:
    def __init__(self, options: CleanOptions | None = None) -> None:
        self._options = options or CleanOptions()
        # Weak, so that a log that was closed and opened anew begins with a clean slate.
        self._refusals: WeakKeyDictionary[Log, _Refusal] = WeakKeyDictionary()

    def clean_dirtiest(self, logs: Iterable[tuple[Log, int]]) -> Cleaned | None:
        """Clean the dirtiest of these pairs (log, first dirty offset); None if none is due."""
        due = self._due(logs)
        for log, part in sorted(due, key=lambda pair: -pair[1].dirty_ratio):
            try:
                result = clean(log, part.first_dirty_offset, self._options)
            except KraftError as error:
                self._refuse(log, error)
                continue
            return Cleaned(log, result)
        return None

    def uncleanable(self) -> dict[str, str]:
        """The directories of the logs that cannot be cleaned, and why."""
        return {log.directory: refusal.reason for log, refusal in list(self._refusals.items())}

    def readmit(self, log: Log) -> None:
        """Try a log again: whatever was wrong with it has been repaired."""
        self._refusals.pop(log, None)

    def _due(self, logs: Iterable[tuple[Log, int]]) -> list[tuple[Log, Cleanable]]:
        now_ms = self._options.clock.wall_ms()
        due = []
        for log, first_dirty_offset in logs:
            if not log.config.compact or self._is_refused(log):
                continue
            try:
                part = find_cleanable(log, first_dirty_offset, now_ms)
            except (KraftError, OSError) as error:
                self._refuse(log, error)
                continue
            if part.is_due(log.config):
                due.append((log, part))
        return due

    def _is_refused(self, log: Log) -> bool:
        refusal = self._refusals.get(log)
        if refusal is None:
            return False
        if refusal.retry_at_ms is None or refusal.retry_at_ms > self._options.clock.monotonic_ms():
            return True
        self.readmit(log)
        return False

    def _refuse(self, log: Log, error: KraftError | OSError) -> None:
        lasting = isinstance(error, LogDamaged | CorruptRecord | ConfigError)
        retry_at_ms = None if lasting else self._options.clock.monotonic_ms() + RETRY_MS
        self._refusals[log] = _Refusal(str(error), retry_at_ms)
        logger.error("%s cannot be compacted: %s", log.directory, error)


def cleaner_for(config: Config, stop: threading.Event) -> Cleaner | None:
    """The cleaner that the configuration of a broker asks for; None without log.cleaner.enable.

    Once `stop` is set it comes to an end within a slice of work, at a pause at once.
    """
    if not config[keys.LOG_CLEANER_ENABLE]:
        return None
    rate = config[keys.LOG_CLEANER_IO_MAX_BYTES_PER_SECOND]
    return Cleaner(
        CleanOptions(
            dedupe_buffer_bytes=config[keys.LOG_CLEANER_DEDUPE_BUFFER_SIZE],
            throttle=Throttle(rate, pause=stop.wait),
            should_stop=stop.is_set,
        )
    )
