"""Whole runs with a controller and scripted brokers."""

import os
import subprocess
import sys

import pytest

from chaos.sim.options import Options
from chaos.sim.runner import run_seed
from tests.chaos.sim.seeds import METADATA_SEEDS, PARTITION_SEEDS
from tests.tidy.source import ROOT

CODE = """
from chaos.sim.options import Options
from chaos.sim.runner import run_seed
for kind in ("metadata", "partitions"):
    print(run_seed(2, Options(kind=kind, voters=1, brokers=3, safety_ms=2000)).trace_hash)
"""


@pytest.mark.parametrize("seed", METADATA_SEEDS, ids=str)
def test_seeds_that_once_found_something(seed: int) -> None:
    outcome = run_seed(seed, Options.swarm(seed, "metadata"))
    assert outcome.failure == "", METADATA_SEEDS[seed]


@pytest.mark.slow
@pytest.mark.parametrize("seed", PARTITION_SEEDS, ids=str)
def test_seeds_of_brokers_that_once_found_something(seed: int) -> None:
    outcome = run_seed(seed, Options.swarm(seed, "partitions"))
    assert outcome.failure == "", PARTITION_SEEDS[seed]


@pytest.mark.slow
def test_the_order_of_sets_does_not_matter() -> None:
    hashes = set()
    for hash_seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", CODE],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(answer.stdout)
    assert len(hashes) == 1
