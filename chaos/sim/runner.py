"""Many seeds, over all cores; a failure is shrunk."""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from chaos.sim.options import Kind, Options, kind_of
from chaos.sim.worlds import make_world

CHUNK = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one seed gave. `failure` is empty if all went well."""

    seed: int
    options: Options
    events: int
    committed: int
    progress_ms: float
    """How long it took to get on after healing."""
    cpu_seconds: float
    trace_hash: str
    reached: dict[str, int]
    failure: str = ""
    story: tuple[str, ...] = ()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The log engine tells what it cuts after a power cut: here that is every other second."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@_quiet()
def run_seed(seed: int, options: Options | None = None, *, live_trace: bool = False) -> Outcome:
    """Without options the seed has the kind and the swarm of its own."""
    begin = time.process_time()
    chosen = options or Options.swarm(seed, kind_of(seed))
    world = make_world(seed, chosen, live_trace=live_trace)
    failure = ""
    try:
        world.run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is a finding
        failure = f"{type(error).__name__}: {error}"
    cluster = world.cluster
    return Outcome(
        seed,
        world.options,
        events=cluster.schedule.events,
        committed=cluster.checker.ledger.end,
        progress_ms=world.progress_ms,
        cpu_seconds=time.process_time() - begin,
        trace_hash=cluster.trace.hash,
        reached=dict(cluster.sightings),
        failure=failure,
        story=(*cluster.trace.recent(), *cluster.describe()) if failure else (),
    )


def shrink(outcome: Outcome) -> Outcome:
    """Turn fault classes off, one by one, as long as it still fails."""
    for fault in outcome.options.faults:
        simpler = run_seed(outcome.seed, outcome.options.without(fault))
        if simpler.failure:
            outcome = simpler
    return outcome


def run_seeds(seeds: Sequence[int], workers: int, kind: Kind | None = None) -> Iterator[Outcome]:
    """`kind` for all of them; None: each its own."""
    chosen = [Options.swarm(seed, kind or kind_of(seed)) for seed in seeds]
    if workers == 1:
        yield from map(run_seed, seeds, chosen)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_seed, seeds, chosen, chunksize=CHUNK)
