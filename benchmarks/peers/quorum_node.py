"""One controller of ours whose proposals come from its own process.

python -m benchmarks.peers.quorum_node DIRECTORY HOST:PORT
"""

import asyncio
import sys
import threading
import time
from concurrent.futures import Future

from benchmarks.peers.load import VALUE
from benchmarks.peers.subject import Subject, Subjects, Values, answer_commands
from kraftlog.clock import SystemClock
from kraftlog.errors import KraftError
from quorum.config import ServerConfig
from quorum.core.config import FAST
from quorum.directory import Seat, form_directories
from quorum.journal import JournalApplication
from quorum.local import free_port
from quorum.node import RaftNode
from quorum.server import ControllerServer, open_controller, spare_the_loop
from storage.files import OsFiles


async def serial(node: RaftNode, given: Values) -> Values:
    taken = []
    for _ in range(int(given["count"])):
        begun = time.perf_counter()
        await node.propose_and_wait([VALUE])
        taken.append(time.perf_counter() - begun)
    taken.sort()
    return {"p50": taken[len(taken) // 2], "p99": taken[len(taken) * 99 // 100]}


async def pipelined(node: RaftNode, given: Values) -> Values:
    """So many proposals at once, each done replaced by a new one."""
    done = 0
    end = time.perf_counter() + given["seconds"]
    finished = asyncio.Event()

    def on_done(result: int | KraftError) -> None:
        nonlocal done
        if isinstance(result, KraftError):
            raise result
        done += 1
        if time.perf_counter() < end:
            node.propose([VALUE], on_done)
        else:
            finished.set()

    begun = time.perf_counter()
    for _ in range(int(given["window"])):
        node.propose([VALUE], on_done)
    await finished.wait()
    return {"rate": done / (time.perf_counter() - begun)}


def answer(loop: asyncio.AbstractEventLoop, server: ControllerServer) -> None:
    """In a thread of its own, since it waits for lines."""

    node = server.node

    def ask_leader(_: Values) -> Values:
        return {"leads": float(node.core.has_committed_epoch())}

    def run_serial(given: Values) -> Values:
        job: Future[Values] = asyncio.run_coroutine_threadsafe(serial(node, given), loop)
        return job.result()

    def run_pipelined(given: Values) -> Values:
        job: Future[Values] = asyncio.run_coroutine_threadsafe(pipelined(node, given), loop)
        return job.result()

    answer_commands({"is_leader": ask_leader, "serial": run_serial, "pipelined": run_pipelined})


async def main(directory: str, listen: str) -> None:
    config = ServerConfig(directory=directory, listen=listen, timing=FAST)
    async with open_controller(config, lambda _: JournalApplication()) as server:
        spare_the_loop()
        loop = asyncio.get_running_loop()
        threading.Thread(target=answer, args=(loop, server), daemon=True).start()
        await server.run()


def start(directory: str) -> Subjects:
    """Three of them."""
    seats = [
        Seat(100 + number, f"{directory}/n{number}", f"127.0.0.1:{free_port()}")
        for number in (1, 2, 3)
    ]
    form_directories(OsFiles(), seats, SystemClock())
    return Subjects(
        [
            Subject(
                "benchmarks.peers.quorum_node",
                [seat.directory, seat.endpoint],
                f"{directory}/{seat.node_id}.log",
            )
            for seat in seats
        ]
    )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
