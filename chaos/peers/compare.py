"""Both engines under the same drill, one after the other, in turns; a table of what came of it."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from chaos.live.measure import percentile
from chaos.peers.drill import QuorumResult, run_quorum_drill
from chaos.peers.faults import KILL, LOSE, PAUSE, STOP
from chaos.peers.quorums import ENGINES, open_quorum

FAULTS = (KILL, STOP, PAUSE, LOSE)
HEADER = "| engine | fault | rounds | gap p50 / max | change p50 | acked | unknown | findings |"


def drill_once(engine: str, directory: Path, *, fault: str, rounds: int) -> QuorumResult:
    data = directory / engine
    data.mkdir()
    quorum = open_quorum(engine, str(data))
    try:
        history = directory / f"{engine}.jsonl"
        return run_quorum_drill(quorum, history, fault=fault, rounds=rounds)
    finally:
        quorum.close()


def row(engine: str, fault: str, results: Sequence[QuorumResult]) -> str:
    gaps = [gap for result in results for gap in result.gaps]
    change = percentile([result.write_p50 for result in results], 0.5)
    cells = (
        engine,
        fault,
        str(len(gaps)),
        f"{percentile(gaps, 0.5):.2f} / {max(gaps):.2f} s",
        f"{change * 1000:.1f} ms",
        str(sum(result.acked for result in results)),
        str(sum(result.unknown for result in results)),
        str(sum(len(result.findings) + len(result.failures) for result in results)),
    )
    return f"| {' | '.join(cells)} |"


def table(faults: Iterable[str], *, rounds: int, repeat: int, engines: Sequence[str]) -> str:
    lines = [HEADER, "|---" * HEADER.count(" | ") + "|---|"]
    for fault in faults:
        found: dict[str, list[QuorumResult]] = {engine: [] for engine in engines}
        for engine in list(engines) * repeat:  # in turns: other work of the machine hits both
            found[engine].append(_measure(engine, fault, rounds))
        lines += [row(engine, fault, results) for engine, results in found.items()]
    return "\n".join(lines)


def _measure(engine: str, fault: str, rounds: int) -> QuorumResult:
    with tempfile.TemporaryDirectory(prefix="kraftlog-peers-") as directory:
        result = drill_once(engine, Path(directory), fault=fault, rounds=rounds)
    for finding in (*result.findings, *result.failures):
        sys.stderr.write(f"{engine}: {finding}\n")
    return result


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="faults in one cluster's life")
    parser.add_argument("--repeat", type=int, default=1, help="clusters of each engine")
    parser.add_argument("--fault", choices=FAULTS, action="append")
    parser.add_argument("--engine", choices=ENGINES, action="append")
    options = parser.parse_args(arguments)
    text = table(
        options.fault or [KILL],
        rounds=options.rounds,
        repeat=options.repeat,
        engines=options.engine or ENGINES,
    )
    load = os.getloadavg()[0]
    sys.stdout.write(f"{text}\n{os.cpu_count()} cores, load {load:.1f}\n")
    return 0
