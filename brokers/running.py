"""What `python -m brokers` can do. `kraftctl node` will call the same functions."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brokers.config import BrokerConfig
from brokers.directories import open_directories
from brokers.server import BrokerServer, open_broker, spare_the_loop
from kraftlog._check import InvariantViolation
from kraftlog.clock import SystemClock
from kraftlog.errors import KraftError
from kraftlog.memory import keep_freed_memory
from storage.files import OsFiles
from storage.log_config import LogConfig

logger = logging.getLogger(__name__)

OK = 0
BROKEN_INVARIANT = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130

Show = Callable[[Mapping[str, object]], None]


def format_directories(config: BrokerConfig) -> dict[str, object]:
    """Give new directories their identity; those that have one must agree with it."""
    defaults = LogConfig.from_config(config.static)
    directories = open_directories(config, OsFiles(), SystemClock(), lambda _: defaults)
    try:
        return _identity(directories.logs.cluster_id, directories.logs.node_id) | {
            "log_dirs": ",".join(each.path for each in directories.logs.dirs)
        }
    finally:
        directories.close()


def serve(config: BrokerConfig, show: Show) -> int:
    """Run a broker until it is told to stop. The first SIGTERM or SIGINT lets others take over
    first, the second does not wait for them, the third ends the process at once.
    """
    keep_freed_memory()
    return asyncio.run(_serve(config, show))


async def _serve(config: BrokerConfig, show: Show) -> int:
    try:
        async with open_broker(config) as server:
            signals = _Signals(server)
            signals.install()
            spare_the_loop()
            show(_announcement(server))
            await server.run()
            return signals.exit_code
    except* InvariantViolation as broken:
        _die(broken)
    except* KraftError as failed:
        raise _leaf(failed) from None
    return OK


@dataclass(slots=True)
class _Signals:
    server: BrokerServer
    exit_code: int = OK
    count: int = 0

    def install(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop, OK)
        loop.add_signal_handler(signal.SIGINT, self._stop, INTERRUPTED)

    def _stop(self, exit_code: int) -> None:
        self.count += 1
        if self.count > 2:
            os._exit(INTERRUPTED)
        if self.count == 1:
            self.exit_code = exit_code
        self.server.stop()


def _announcement(server: BrokerServer) -> dict[str, object]:
    facts = _identity(str(server.cluster_id), server.directories.logs.node_id)
    facts |= {"endpoint": server.address.endpoint, "pid": os.getpid()}
    if server.address.metrics:
        facts["metrics"] = f"http://{server.address.metrics}/metrics"
    return facts


def _identity(cluster_id: str, node_id: int | None) -> dict[str, object]:
    return {"cluster_id": cluster_id, "node_id": node_id if node_id is not None else "handed out"}


def _leaf(group: BaseExceptionGroup[KraftError]) -> KraftError:
    first = group.exceptions[0]
    return _leaf(first) if isinstance(first, BaseExceptionGroup) else first


def _die(broken: BaseException) -> None:
    """At once: nothing that could still be flushed, closed or answered can be trusted."""
    logger.critical("a rule of this program does not hold; the process ends", exc_info=broken)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(BROKEN_INVARIANT)
