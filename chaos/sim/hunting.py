"""Hunts mutants: each runs through seeds until a rule is broken. One that survives is a failure."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from chaos.sim.options import Kind, Options
from chaos.sim.patching import Mutant, planted
from chaos.sim.runner import run_seed
from kraftlog._check import InvariantViolation


@dataclass(frozen=True, slots=True)
class Catch:
    """How it ended. `rule` is empty if the mutant survived."""

    mutant: str
    rule: str
    seeds: int
    cpu_seconds: float
    broken: str = ""
    """A mutant that only raises some other error proves nothing."""
    kind: Kind = "quorum"


def hunt(mutant: Mutant, first_seed: int = 1) -> Catch:
    begin = time.process_time()
    with planted(mutant):
        for number in range(1, mutant.seeds + 1):
            seed = first_seed + number - 1
            failure = run_seed(seed, Options.swarm(seed, mutant.kind)).failure
            if failure:
                return _judge(mutant, failure, number, time.process_time() - begin)
    seconds = time.process_time() - begin
    return Catch(mutant.name, "", mutant.seeds, seconds, kind=mutant.kind)


def _judge(mutant: Mutant, failure: str, seeds: int, seconds: float) -> Catch:
    kind, _, rule = failure.partition(": ")
    if kind != InvariantViolation.__name__:
        return Catch(mutant.name, "", seeds, seconds, broken=failure, kind=mutant.kind)
    return Catch(mutant.name, rule.partition(":")[0], seeds, seconds, kind=mutant.kind)


def hunt_all(mutants: Sequence[Mutant], workers: int) -> Iterator[Catch]:
    if workers == 1:
        yield from map(hunt, mutants)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(hunt, mutants)
