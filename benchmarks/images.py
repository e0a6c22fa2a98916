"""Metadata images: persistent maps, replay, decisions, memory. `python -m benchmarks.images`

`KRAFTLOG_BENCH_PARTITIONS` sets how many partitions; 100 000 if it does not. The map that was not
chosen (docs/adr/0005-persistent-maps.md) is measured where it is installed.
"""

import gc
import importlib
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from rpds import HashTrieMap

from benchmarks.harness import Benchmark, Row, main, median_cost
from kraftlog.rpc import records_pb2
from kraftlog.types import Uuid
from metadata_log.codec import decode_record, encode
from metadata_log.decide import Decision
from metadata_log.decide.brokers import Registration, register
from metadata_log.decide.features import SUPPORTED
from metadata_log.decide.fencing import fence, unfence
from metadata_log.decide.partitions import (
    AlterPartitions,
    IsrChange,
    IsrMember,
    alter_partitions,
)
from metadata_log.decide.topics import CreateTopics, NewTopic, create_topics
from metadata_log.image import EMPTY, Image, Role
from metadata_log.places import Agenda
from metadata_log.records import Cause, CauseKind, FenceCause, Listener
from metadata_log.replay import load, replay_all
from metadata_log.snapshot import digest, write_values

PARTITIONS = int(os.environ.get("KRAFTLOG_BENCH_PARTITIONS", "100000"))
PER_TOPIC = 100
BROKERS = 6
KEYS = 20_000
CLUSTER_ID = Uuid(b"cluster of bench")
CAUSE = Cause(CauseKind.SESSION_TIMEOUT, "broker 1, 9000 ms")

R = TypeVar("R")


class Dice:
    def __init__(self) -> None:
        self.random = random.Random(1)

    def below(self, limit: int) -> int:
        return self.random.randrange(limit)

    def uuid(self) -> Uuid:
        return Uuid(self.random.randbytes(16))


DICE = Dice()


def apply(image: Image, decision: Decision[R]) -> Image:
    records = (each.record for each in decision.records)
    return replay_all(image, records, image.end_offset)


def brokers() -> Image:
    image = EMPTY
    for number in range(1, BROKERS + 1):
        request = Registration(
            broker_id=number,
            cluster_id=CLUSTER_ID,
            incarnation_id=DICE.uuid(),
            listeners=(Listener("CLIENT", "localhost", 9_000 + number),),
            log_dirs=(DICE.uuid(),),
            features=tuple(SUPPORTED.values()),
        )
        end = image.end_offset
        decision = register(image, request, cluster_id=CLUSTER_ID, next_offset=end, alive=False)
        image = apply(image, decision)
        image = apply(image, unfence(image, number, CAUSE))
    return image


def new_topic(image: Image, name: str, partitions: int = PER_TOPIC) -> Decision[object]:
    topic = NewTopic(name=name, partitions=partitions, replication_factor=3)
    return create_topics(image, CreateTopics((topic,)), draw=DICE)


def filled() -> Image:
    image = brokers()
    for number in range(PARTITIONS // PER_TOPIC):
        image = apply(image, new_topic(image, f"topic-{number}"))
    gc.freeze()  # as the servers do once they have loaded theirs
    return image


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def row(name: str, reached: float, unit: str, target: float, note: str = "") -> Row:
    """`unit` ends in /s where more is better; all is CPU time."""
    more_is_better = unit.endswith("/s")
    cpu = 1e6 / reached if more_is_better else 0.0
    per = unit.removesuffix("s/s") if more_is_better else "-"
    return Row(name, reached, unit, target, more_is_better, cpu, per, note)


# -- images


def memory(directory: str) -> list[Row]:
    """What an image of all partitions takes in a process that loads it and nothing else."""
    path = Path(directory, "values")
    with path.open("wb") as file:
        for value in write_values(filled()):
            file.write(len(value).to_bytes(4, "big") + value)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as another:
        taken, collection = another.submit(loaded_mb, path).result()
    note = f"{PARTITIONS:,} partitions, RF 3; a full collection takes {collection * 1e3:.0f} ms"
    return [row("image in memory", taken, "MB", 100 * PARTITIONS / 100_000, note)]


def loaded_mb(path: Path) -> tuple[float, float]:
    """Megabytes of an image, and seconds of a full collection beside it."""
    gc.collect()
    before = resident_mb()
    image = load(map(decode_record, stored_values(path)), 0)
    gc.collect()
    taken = resident_mb() - before
    started = time.process_time()
    gc.collect()
    if image.partition_count != PARTITIONS:
        raise RuntimeError(f"{image.partition_count} partitions were loaded")
    return taken, time.process_time() - started


def stored_values(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while length := file.read(4):
            yield file.read(int.from_bytes(length, "big"))


def replaying(_directory: str) -> list[Row]:
    """From the values of a snapshot to an image, against parsing the protobuf alone."""
    image = filled()
    values = list(write_values(image))
    count = len(values)
    parse = records_pb2.MetadataRecord.FromString
    bare = median_cost(lambda: [parse(value) for value in values], repeat=3)
    ours = median_cost(lambda: load(map(decode_record, values), 0), repeat=3)
    writing = median_cost(lambda: sum(map(len, write_values(image))), repeat=3)
    hashing = median_cost(lambda: digest(image), repeat=3)
    ratio = ours.cpu_seconds / bare.cpu_seconds
    note = f"{count:,} records, {ratio:.1f} x the CPU of a bare protobuf parse"
    return [
        row("replay a snapshot", count / ours.cpu_seconds, "records/s", 100_000, note),
        row("write a snapshot", count / writing.cpu_seconds, "records/s", 50_000),
        row("digest", hashing.cpu_seconds, "s", 30 * PARTITIONS / 1e6),
    ]


def creating(_directory: str) -> list[Row]:
    """Decide, encode and replay: what the controller itself does for new topics."""
    image = filled()

    def large() -> None:
        decision = new_topic(image, "large", 1_000)
        for each in decision.records:
            encode(each)
        apply(image, decision)

    def small() -> None:
        for number in range(100):
            decision = new_topic(image, f"small-{number}", 1)
            for each in decision.records:
                encode(each)
            apply(image, decision)

    many, one = median_cost(large), median_cost(small)
    return [
        row("create 1 000 partitions", 1_000 / many.cpu_seconds, "partitions/s", 20_000),
        row("create one partition", one.cpu_seconds / 100 * 1e3, "ms", 1.0),
    ]


def fencing(_directory: str) -> list[Row]:
    """A broker dies: decide, encode and replay step by step."""
    image = filled()
    led, followed = (len(image.places(role, 1)) for role in (Role.LEADER, Role.ISR))
    steps: list[float] = []
    agenda: Agenda | None = None
    while agenda is not None or not steps:
        started = time.process_time()
        decision = fence(image, 1, FenceCause.SESSION_TIMEOUT, CAUSE, agenda=agenda)
        for each in decision.records:
            encode(each)
        image = apply(image, decision)
        agenda = decision.agenda
        steps.append(time.process_time() - started)
    middle = sorted(steps)[len(steps) // 2] * 1e3
    note = f"{followed:,} ISR changes, {led:,} of them leaders, in {len(steps)} steps"
    return [
        row("fence a broker", followed / sum(steps), "changes/s", 15_000, note),
        row("one step of it, median", middle, "ms", 20, f"longest {max(steps) * 1e3:.0f} ms"),
    ]


def altering(_directory: str) -> list[Row]:
    """One ISR change among all partitions: the cost must not grow with their number."""
    image = filled()
    place = next(iter(image.places(Role.LEADER, 2)))
    state, epoch = image.at(place), image.brokers[2].epoch
    change = IsrChange(
        topic_id=place.topic_id,
        partition=place.partition,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        isr=(IsrMember(2, epoch),),
    )
    request = AlterPartitions(2, epoch, (change,))

    def work() -> None:
        for _ in range(100):
            apply(image, alter_partitions(image, request))

    cost = median_cost(work)
    return [row("alter one partition", cost.cpu_seconds / 100 * 1e6, "us", 500)]


# -- maps


Map = Mapping[bytes, int]


def maps(_directory: str) -> list[Row]:
    """The two libraries, and the dict that they are compared with, on keys like topic ids."""
    dice = random.Random(2)
    values = {dice.randbytes(16): 1 for _ in range(KEYS)}
    rows = map_rows("dict", values, dict)
    rows += map_rows("rpds-py", values, HashTrieMap, "insert")
    try:
        other = importlib.import_module("immutables")
    except ImportError:
        print("immutables is not installed: rpds-py is compared with a dict only")
        return rows
    return rows + map_rows("immutables", values, other.Map, "set")


def map_rows(
    name: str, values: dict[bytes, int], make: Callable[[Map], Map], put: str = ""
) -> list[Row]:
    made = make(values)
    works: dict[str, Callable[[], object]] = {
        "make": lambda: make(values),
        "get": lambda: [made.get(key) for key in values],
        "walk": lambda: sum(1 for _ in made.items()),
    }
    if put:
        change: Callable[[bytes, int], object] = getattr(made, put)
        works["change"] = lambda: [change(key, 2) for key in values]
    return [
        row(f"{name}: {verb}", len(values) / median_cost(work).cpu_seconds, "operations/s", 100_000)
        for verb, work in works.items()
    ]


BENCHMARKS: dict[str, Benchmark] = {
    "memory": memory,
    "replay": replaying,
    "create": creating,
    "fence": fencing,
    "alter": altering,
    "maps": maps,
}

if __name__ == "__main__":
    sys.exit(main("Metadata images, measured.", BENCHMARKS, sys.argv[1:]))
