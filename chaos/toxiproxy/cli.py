"""The process of the embedded server: python -P -m chaos.toxiproxy --port 0 --seed 7

One line of JSON says where it listens, once it does: {"address": "127.0.0.1:8474", "pid": 123}. It
ends with SIGTERM or SIGINT.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Coroutine, Sequence

from chaos.toxiproxy.api import Api
from chaos.toxiproxy.collection import Collection
from chaos.toxiproxy.http_server import listen
from chaos.toxiproxy.metrics import proxy_metrics

DEFAULT_PORT = 8474


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos.toxiproxy", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="where the API listens")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0: any that is free")
    parser.add_argument("--seed", type=int, default=0, help="of jitter, slices and toxicity")
    parser.add_argument("--proxy-metrics", action="store_true", help="serve /metrics")
    return parser.parse_args(arguments)


async def serve(host: str, port: int, *, seed: int, with_metrics: bool) -> None:
    """Until a signal ends it."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with asyncio.TaskGroup() as tasks:

        def start(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
            task = tasks.create_task(work)
            running.add(task)
            task.add_done_callback(running.discard)
            return task

        running: set[asyncio.Task[None]] = set()
        collection = Collection(start, random.Random(seed))  # noqa: S311 - to be replayed
        api = Api(collection, proxy_metrics(collection) if with_metrics else None)
        server = await listen(api.handle, host, port)
        announce(server)
        await stopped.wait()
        server.close()
        collection.stop_all()
        for task in running:
            task.cancel()


def announce(server: asyncio.Server) -> None:
    host, port = server.sockets[0].getsockname()[:2]
    sys.stdout.write(json.dumps({"address": f"{host}:{port}", "pid": os.getpid()}) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    options, failed = parse(arguments), False
    try:
        asyncio.run(
            serve(options.host, options.port, seed=options.seed, with_metrics=options.proxy_metrics)
        )
    except* (OSError, OverflowError) as errors:
        reason = errors.exceptions[0]
        sys.stderr.write(f"cannot listen on {options.host}:{options.port}: {reason}\n")
        failed = True
    return int(failed)
