"""PySyncObj with a replicated counter of 100-byte values, journal and dump files set.

python -m benchmarks.peers.pysyncobj_node OWN PEER,PEER DIRECTORY BATCH(0|1)
"""

import sys
import threading
import time

from pysyncobj import SyncObj, SyncObjConf, replicated

from benchmarks.peers.load import VALUE
from benchmarks.peers.subject import Subject, Subjects, Values, answer_commands
from quorum.local import free_port

TIMEOUT = 30.0


class Journal(SyncObj):  # type: ignore[misc]
    def __init__(self, own: str, peers: list[str], conf: object) -> None:
        super().__init__(own, peers, conf)
        self.records = 0

    @replicated  # type: ignore[untyped-decorator]
    def add(self, _value: bytes) -> int:
        self.records += 1
        return self.records


def serial(journal: Journal, given: Values) -> Values:
    taken = []
    for _ in range(int(given["count"])):
        begun = time.perf_counter()
        journal.add(VALUE, sync=True, timeout=TIMEOUT)
        taken.append(time.perf_counter() - begun)
    taken.sort()
    return {"p50": taken[len(taken) // 2], "p99": taken[len(taken) * 99 // 100]}


def pipelined(journal: Journal, given: Values) -> Values:
    """So many proposals at once, each done replaced by a new one."""
    window = threading.Semaphore(int(given["window"]))
    done = 0

    def on_done(*_: object) -> None:
        nonlocal done
        done += 1
        window.release()

    begun = time.perf_counter()
    while time.perf_counter() < begun + given["seconds"]:
        window.acquire(timeout=1)
        journal.add(VALUE, callback=on_done)
    return {"rate": done / (time.perf_counter() - begun)}


def main(own: str, peers: str, directory: str, batch: str) -> None:
    conf = SyncObjConf(
        appendEntriesUseBatch=batch == "1",
        journalFile=f"{directory}/{own}.journal",
        fullDumpFile=f"{directory}/{own}.dump",
        commandsWaitLeader=True,
    )
    journal = Journal(own, peers.split(","), conf)
    answer_commands(
        {
            "is_leader": lambda _: {"leads": float(str(journal.getStatus()["leader"]) == own)},
            "serial": lambda given: serial(journal, given),
            "pipelined": lambda given: pipelined(journal, given),
        }
    )


def start(directory: str, *, batch: bool) -> Subjects:
    """Three of them."""
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    children = []
    for own in addresses:
        peers = ",".join(each for each in addresses if each != own)
        arguments = [own, peers, directory, str(int(batch))]
        children.append(
            Subject("benchmarks.peers.pysyncobj_node", arguments, f"{directory}/{own}.log")
        )
    return Subjects(children)


if __name__ == "__main__":
    main(*sys.argv[1:])
