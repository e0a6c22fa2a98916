"""The quorum: three real processes, fsync on, beside etcd and PySyncObj on the same work.

python -m benchmarks.quorum [NAME...] [-o json]

A peer that is not there is named, and the ratio to the raw limit is printed all the same. The
client shares the machine with all servers.
"""

import asyncio
import itertools
import os
import shutil
import signal
import statistics
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from benchmarks.harness import Benchmark, Row, main
from benchmarks.peers import etcd, pysyncobj_node, quorum_node
from benchmarks.peers.load import (
    VALUE,
    Put,
    concurrent,
    cpu_seconds,
    fdatasyncs_per_second,
    milliseconds,
    percentile,
    serial,
)
from kraftlog.connection import open_channel
from kraftlog.errors import KraftError
from kraftlog.types import Uuid
from quorum.client import QuorumClient
from quorum.local import ControllerProcess, LocalQuorum, free_port
from quorum.proposer import Proposer

T = TypeVar("T")

# One loop for all: gRPC's poller complains of a loop that is gone.
_run = asyncio.Runner().run

FAST = ("--profile", "fast", "--state", "journal")
KEEP_THE_LOG = ("-X", "metadata.log.max.record.bytes.between.snapshots=10000000000")
TIGHT = (
    *FAST,
    *("-X", "controller.quorum.fetch.timeout.ms=500"),
    *("-X", "controller.quorum.election.timeout.ms=250"),
)
SERIAL = 500
ROUNDS = 3
SECONDS = 3.0
CALLERS = 100
KILLS = 20
CATCH_UP = 100_000
NEWCOMERS = 5
TRY_MS = 200
"""How long a caller waits for one answer while a leader is missing; it then asks again."""
NO_TARGET = 0.0


class Ours:
    """Three controllers and streams to whoever leads."""

    def __init__(self, quorum: LocalQuorum, leader: str, leader_id: int) -> None:
        self.quorum = quorum
        self.cluster_id = Uuid.parse(quorum.cluster_id)
        self.leader = leader
        self.leader_id = leader_id
        self._tasks: asyncio.TaskGroup | None = None

    @classmethod
    async def of(cls, quorum: LocalQuorum) -> "Ours":
        async with QuorumClient(quorum.endpoints, timeout_ms=30_000) as client:
            leader = (await client.find_leader()).header.leader
        return cls(quorum, leader.endpoint, leader.key.node_id)

    @property
    def leader_pid(self) -> int:
        return self.quorum.nodes[self.leader_id].pid

    @asynccontextmanager
    async def puts(self, streams: int, callers: int) -> AsyncIterator[list[Put]]:
        """Callers spread over some streams to the leader."""
        async with asyncio.TaskGroup() as tasks:
            proposers = [Proposer(self.leader, self.cluster_id) for _ in range(streams)]
            running = [tasks.create_task(each.run()) for each in proposers]
            yield [_put(proposers[number % streams]) for number in range(callers)]
            for task in running:
                task.cancel()

    def metric(self, name: str) -> float:
        url = f"http://{self.quorum.nodes[self.leader_id].ready['metrics']}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.split()[0] == name)


def _put(proposer: Proposer) -> Put:
    async def put() -> None:
        await proposer.propose([VALUE])

    return put


def _cluster(directory: str, *arguments: str) -> LocalQuorum:
    metrics = ("--metrics", "127.0.0.1:0")
    return LocalQuorum(directory, arguments=(*arguments, *KEEP_THE_LOG, *metrics)).start()


# -- commit latency, one caller


async def _ours_serial(ours: Ours) -> tuple[list[float], float]:
    async with ours.puts(1, 1) as (put,):
        before = cpu_seconds(ours.leader_pid)
        taken = await serial(put, SERIAL)
        return taken, (cpu_seconds(ours.leader_pid) - before) / SERIAL * 1e6


async def _etcd_serial(peer: etcd.Etcd) -> list[float]:
    async with open_channel(await peer.leader()) as channel:
        return await serial(etcd.put_on(channel, itertools.count(time.time_ns())), SERIAL)


def _on_etcd(
    program: str, directory: str, work: Callable[[etcd.Etcd], Coroutine[None, None, T]]
) -> T:
    """The same work on three etcd processes, which are gone afterwards."""
    os.makedirs(directory)
    with etcd.Etcd(program, directory) as peer:
        return _run(work(peer))


def commit_latency(directory: str) -> list[Row]:
    """One caller, one commit after the other, on the stream; rounds of both systems in turn."""
    program = etcd.binary()
    ours_taken: list[float] = []
    etcd_taken: list[float] = []
    ratios: list[float] = []
    with _cluster(f"{directory}/ours", *FAST) as quorum:
        ours = _run(Ours.of(quorum))
        limit = fdatasyncs_per_second(directory)
        cpu = 0.0
        for number in range(ROUNDS):
            taken, cpu = _run(_ours_serial(ours))
            ours_taken += taken
            if program:
                theirs = _on_etcd(program, f"{directory}/etcd{number}", _etcd_serial)
                etcd_taken += theirs
                ratios.append(percentile(taken, 50) / percentile(theirs, 50))
    p50, p99 = percentile(ours_taken, 50), percentile(ours_taken, 99)
    name, mine = "commit, serial", f"ours {milliseconds(ours_taken)}"
    rows = [_no_etcd(name, mine)]
    if program:
        note = f"{mine}; etcd {etcd.version(program)} {milliseconds(etcd_taken)}"
        ratio = statistics.median(ratios)
        rows = [Row(f"{name}, p50 to etcd's", ratio, "x", 2, False, cpu, "commit", note)]
    note = f"bare fdatasync loop {limit:,.0f}/s"
    return [
        *rows,
        Row(f"{name}, p99 to p50", p99 / p50, "x", 4, False, cpu, "commit", mine),
        Row(f"{name}, part of fdatasync", 1 / p50 / limit, "x", 0, True, cpu, "commit", note),
    ]


def _no_etcd(name: str, mine: str) -> Row:
    note = f"{mine}; no etcd found: set ETCD or install etcd-server"
    return Row(f"{name}, to etcd", NO_TARGET, "x", NO_TARGET, True, 0, "commit", note)


# -- many callers


async def _ours_concurrent(ours: Ours, streams: int, callers: int) -> float:
    async with ours.puts(streams, callers) as puts:
        return await concurrent(puts, SECONDS)


async def _etcd_concurrent(peer: etcd.Etcd) -> float:
    async with open_channel(await peer.leader()) as channel:
        keys = itertools.count(time.time_ns())
        return await concurrent([etcd.put_on(channel, keys) for _ in range(CALLERS)], SECONDS)


def many_callers(directory: str) -> list[Row]:
    """100 callers in one process; ours share streams, and what is queued goes in one message."""
    program = etcd.binary()
    rates: list[float] = []
    theirs: list[float] = []
    with _cluster(f"{directory}/ours", *FAST) as quorum:
        ours = _run(Ours.of(quorum))
        before = cpu_seconds(ours.leader_pid)
        for number in range(ROUNDS):
            rates.append(_run(_ours_concurrent(ours, 1, CALLERS)))
            if program:
                rate = _on_etcd(program, f"{directory}/etcd{number}", _etcd_concurrent)
                theirs.append(rate)
        cpu = (cpu_seconds(ours.leader_pid) - before) / (sum(rates) * SECONDS) * 1e6
    name = f"commits, {CALLERS} callers"
    mine = f"ours {statistics.median(rates):,.0f}/s"
    if not program:
        return [_no_etcd(name, mine)]
    pairs = [own / other for own, other in zip(rates, theirs, strict=True)]
    note = f"{mine}; etcd {etcd.version(program)} {statistics.median(theirs):,.0f}/s"
    ratio = statistics.median(pairs)
    return [Row(f"{name}, to etcd's", ratio, "x", 2, True, cpu, "commit", note)]


def group_commit(directory: str) -> list[Row]:
    """Commits per flush of the leader, with more and more callers."""
    rows = []
    with _cluster(f"{directory}/ours", *FAST) as quorum:
        ours = _run(Ours.of(quorum))
        limit = fdatasyncs_per_second(directory)
        for callers in (1, 16, CALLERS, 64 * 8):
            flushes = ours.metric("kraftlog_raft_flushes_total")
            cpu = cpu_seconds(ours.leader_pid)
            rate = _run(_ours_concurrent(ours, 1 + callers // 128, callers))
            flushes = (ours.metric("kraftlog_raft_flushes_total") - flushes) / SECONDS
            cpu = (cpu_seconds(ours.leader_pid) - cpu) / (rate * SECONDS) * 1e6
            note = f"{rate:,.0f} commits/s, {flushes:,.0f} flushes/s of a bare loop's {limit:,.0f}"
            name = f"commits per flush, {callers} callers"
            target = min(callers / 8, 20) if callers > 1 else 0.9
            rows.append(Row(name, rate / flushes, "x", target, True, cpu, "commit", note))
        lag = ours.metric("kraftlog_loop_lag_max_seconds") * 1e3
        rows.append(Row("longest loop lag", lag, "ms", 20, False, 0, "run", "of the leader"))
    return rows


# -- proposals from the leader's own process


def in_process(directory: str) -> list[Row]:
    """Window of 1 000 proposals of 100 bytes, submitted where the leader is."""
    with quorum_node.start(directory) as ours:
        leader = ours.leader()
        leader.do("pipelined", window=1_000, seconds=1)
        mine = leader.do("pipelined", window=1_000, seconds=SECONDS)["rate"]
        alone = leader.do("serial", count=SERIAL)
    name = "in process, window 1000"
    own = f"ours {mine:,.0f}/s, serial p50 {alone['p50'] * 1e3:.2f} ms"
    rows = []
    for batch in (True, False):
        place = f"{directory}/pysyncobj{batch}"
        os.makedirs(place)
        with pysyncobj_node.start(place, batch=batch) as theirs:
            peer = theirs.leader()
            rate = peer.do("pipelined", window=1_000, seconds=SECONDS)["rate"]
            alone = peer.do("serial", count=20 if batch else 200)
        theirs_alone = f"serial p50 {alone['p50'] * 1e3:.2f} ms, without any fsync"
        note = f"{own}; PySyncObj {rate:,.0f}/s, {theirs_alone}"
        words = "on" if batch else "off"
        label = f"{name}, to PySyncObj (batching {words})"
        rows.append(Row(label, mine / rate, "x", 5, True, 0, "commit", note))
    return rows


# -- a wiped follower


async def _fill(ours: Ours, records: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        proposer = Proposer(ours.leader, ours.cluster_id)
        task = tasks.create_task(proposer.run())
        for _ in range(records // 500):
            await proposer.propose([VALUE] * 500)
        task.cancel()


async def _wait_caught_up(address: str, end_offset: int) -> None:
    async with QuorumClient([address], timeout_ms=30_000) as client:
        while (await client.describe(address)).end_offset < end_offset:  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def _serial_beside(ours: Ours, stop: asyncio.Event) -> list[float]:
    taken = []
    async with ours.puts(1, 1) as (put,):
        while not stop.is_set():
            begun = time.perf_counter()
            await put()
            taken.append(time.perf_counter() - begun)
    return taken


class Neighbour:
    """The p99 of a serial caller: alone, beside a process that only burns a core, and beside
    newcomers that catch up.
    """

    def __init__(self, ours: Ours) -> None:
        self._ours = ours
        self.seconds = 0.0
        self._taken: list[float] = []

    async def alone(self, seconds: float) -> float:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(_serial_beside(self._ours, stop))
            await asyncio.sleep(seconds)
            stop.set()
        return percentile(caller.result(), 99)

    async def beside_a_loop(self, seconds: float) -> float:
        loop = await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass")
        try:
            return await self.alone(seconds)
        finally:
            loop.kill()
            await loop.wait()

    async def beside_a_newcomer(self, node: ControllerProcess, address: str) -> None:
        """From when it has started, which is the work of an interpreter, until it has the log."""
        async with QuorumClient([self._ours.leader]) as client:
            end = (await client.describe(self._ours.leader)).end_offset
        await asyncio.to_thread(node.start)
        await asyncio.to_thread(node.wait_ready)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(_serial_beside(self._ours, stop))
            begun = time.perf_counter()
            await _wait_caught_up(address, end)
            self.seconds += time.perf_counter() - begun
            stop.set()
        self._taken += caller.result()

    def slowed(self) -> float:
        return percentile(self._taken, 99)


def _newcomer(directory: str, leader: str, number: int) -> tuple[ControllerProcess, str]:
    address = f"127.0.0.1:{free_port()}"
    arguments = ["join", leader, "--observer", "--node-id", str(number), *FAST, *KEEP_THE_LOG]
    arguments += ["--directory", f"{directory}/{number}", "--listen", address]
    return ControllerProcess(arguments, f"{directory}/{number}.log"), address


def catch_up(directory: str) -> list[Row]:
    """A follower whose disk is lost comes back empty, while a caller goes on: a few times."""
    with _cluster(f"{directory}/ours", *FAST) as quorum:
        ours = _run(Ours.of(quorum))
        _run(_fill(ours, CATCH_UP))
        lost = next(seat for seat in quorum.seats if seat.node_id != ours.leader_id)
        quorum.nodes[lost.node_id].kill()
        kept = next(seat for seat in quorum.seats if seat.node_id == ours.leader_id)
        size = os.path.getsize(f"{kept.directory}/__cluster_metadata-0/{0:020d}.log")
        shutil.rmtree(lost.directory)
        neighbour = Neighbour(ours)
        calm = _run(neighbour.alone(SECONDS))
        burning = _run(neighbour.beside_a_loop(SECONDS))
        for number in range(NEWCOMERS):
            node, address = _newcomer(directory, ours.leader, 900 + number)
            try:
                _run(neighbour.beside_a_newcomer(node, address))
            finally:
                node.close()
    taken = neighbour.seconds / NEWCOMERS
    name, slower = "wiped follower", neighbour.slowed()
    note = (
        f"{CATCH_UP:,} records, {size / 1e6:.1f} MB in {taken:.2f} s: {size / taken / 1e6:.0f} MB/s"
    )
    beside = (
        f"of a serial caller beside it: {calm * 1e3:.1f} ms alone, {slower * 1e3:.1f} beside"
        f" {NEWCOMERS} of them, {burning * 1e3:.1f} beside an empty loop on one of the cores"
    )
    return [
        Row(f"{name}, records", CATCH_UP / taken, "records/s", 200_000, True, 0, "run", note),
        Row(f"{name}, leader p99", slower / calm, "x", 2, False, 0, "run", beside),
    ]


# -- the leader dies


async def _probe(endpoint: str, cluster_id: Uuid, done: "asyncio.Future[float]") -> None:
    """Propose to one controller until it commits; whoever is first has found the new leader."""
    async with asyncio.TaskGroup() as tasks:
        proposer = Proposer(endpoint, cluster_id)
        task = tasks.create_task(proposer.run())
        while not done.done():
            try:
                await proposer.propose([VALUE], timeout_ms=TRY_MS)
            except KraftError:
                await asyncio.sleep(0.005)
                continue
            if not done.done():
                done.set_result(time.perf_counter())
        task.cancel()


async def _gap(quorum: LocalQuorum, number: signal.Signals) -> float:
    """From the signal to the leader to the next commit at another."""
    ours = await Ours.of(quorum)
    others = [each for each in quorum.endpoints if each != ours.leader]
    async with ours.puts(1, 1) as (put,):
        await put()
    node = quorum.nodes[ours.leader_id]
    done: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        begun = time.perf_counter()
        node.signal(number)
        for endpoint in others:
            tasks.create_task(_probe(endpoint, ours.cluster_id, done))
        await done
    await asyncio.to_thread(node.wait)
    await asyncio.to_thread(quorum.restart, ours.leader_id)
    return done.result() - begun


def _gaps(directory: str, arguments: Sequence[str], number: signal.Signals) -> list[float]:
    with _cluster(directory, *arguments) as quorum:
        found = []
        for _ in range(KILLS):
            found.append(_run(_gap(quorum, number)))
            _run(_all_follow(quorum))
        return found


async def _all_follow(quorum: LocalQuorum) -> None:
    """Until everybody has the leader's log, as it is most of the time."""
    async with QuorumClient(quorum.endpoints, timeout_ms=30_000) as client:
        end = (await client.find_leader()).end_offset
        for endpoint in quorum.endpoints:
            while (await client.describe(endpoint)).end_offset < end:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def failover(directory: str) -> list[Row]:
    """From the signal to the next commit elsewhere, 20 times each; a try takes 200 ms at most."""
    rows = []
    cases: list[tuple[str, Sequence[str], signal.Signals, float, float]] = [
        ("kill -9, fast", FAST, signal.SIGKILL, 95, 1.2),
        ("kill -9, 500/250", TIGHT, signal.SIGKILL, 50, 0.8),
        ("SIGTERM, fast", FAST, signal.SIGTERM, 50, 0.2),
    ]
    for index, (name, arguments, number, percent, target) in enumerate(cases):
        gaps = _gaps(f"{directory}/{index}", arguments, number)
        shown = ", ".join(f"p{each} {percentile(gaps, each):.2f}" for each in (50, 95))
        note = f"{shown}, max {max(gaps):.2f} s over {len(gaps)}"
        reached = percentile(gaps, percent)
        rows.append(Row(f"{name}, p{percent:.0f}", reached, "s", target, False, 0, "kill", note))
    return rows


BENCHMARKS: dict[str, Benchmark] = {
    "commit-latency": commit_latency,
    "many-callers": many_callers,
    "group-commit": group_commit,
    "in-process": in_process,
    "catch-up": catch_up,
    "failover": failover,
}

if __name__ == "__main__":
    sys.exit(main("The quorum, measured.", BENCHMARKS, sys.argv[1:]))
