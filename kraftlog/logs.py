"""What servers log: on standard error, each line with a level, and no line again and again.
What clients log is shown, or not, by the program that they are part of.

KRAFTLOG_LOG_FORMAT says how: `text`, or `json` for one object a line.
"""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from kraftlog.errors import ConfigError

FORMAT_VARIABLE = "KRAFTLOG_LOG_FORMAT"
TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

LINES_MAX = 20
"""So many lines of one kind within a period; more are counted, and the next one tells how many."""
PERIOD_SECONDS = 10.0
KINDS_MAX = 1_000


def start_logging(environment: Mapping[str, str], *, verbose: bool) -> None:
    """For a process that is a server. `verbose`: debug lines too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(environment.get(FORMAT_VARIABLE, "text")))
    handler.addFilter(RateLimit())
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
    # It warns of every stream that a server's own stop ends.
    logging.getLogger("grpc._cython.cygrpc").setLevel(logging.ERROR)


def client_logger(name: str) -> logging.Logger:
    """The logger of a module of the client library. Nothing is shown in a program that has not set
    up logging, and nothing again and again in one that has.
    """
    logging.getLogger("kraftlog").addHandler(_NULL)
    logger = logging.getLogger(name)
    logger.addFilter(_CLIENT_LIMIT)
    return logger


def formatter(name: str) -> logging.Formatter:
    if name not in ("text", "json"):
        raise ConfigError(f"{FORMAT_VARIABLE}={name}", hint="it is text or json")
    return JsonFormatter() if name == "json" else logging.Formatter(TEXT)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class RateLimit(logging.Filter):
    """Holds back what one place in the code says too often; never debug lines."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return True
        with self._lock:
            held = self._admit((record.name, str(record.msg)))
        if held:
            record.msg = f"{record.getMessage()} ({held} more like this were not shown)"
            record.args = ()
        return held is not None

    def _admit(self, name: tuple[str, str]) -> int | None:
        """How many were held back before this one; None: it is held back, too."""
        now = self._now()
        kind = self._kinds.get(name)
        if kind is None or now - kind.begun >= PERIOD_SECONDS:
            if len(self._kinds) >= KINDS_MAX:
                self._kinds.clear()
            self._kinds[name] = _Kind(now)
            return kind.held if kind else 0
        kind.shown += 1
        kind.held += kind.shown > LINES_MAX
        return None if kind.held else 0


_NULL = logging.NullHandler()
_CLIENT_LIMIT = RateLimit()


class _Kind:
    __slots__ = ("begun", "held", "shown")

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.shown = 1
        self.held = 0
