"""What people read: progress, a summary, the story of a failure, the table of mutants."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from chaos.sim.hunting import Catch
from chaos.sim.options import Options, kind_of
from chaos.sim.runner import Outcome
from chaos.sim.sightings import RARE_STATES


class Progress:
    """One line that is written over, on a terminal; elsewhere a line now and then."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begin = time.monotonic()
        self._every = 1 if sys.stderr.isatty() else max(1, total // 10)

    def show(self, done: int, what: str = "seeds") -> None:
        if done % self._every and done != self._total:
            return
        seconds = time.monotonic() - self._begin
        end = "\r" if sys.stderr.isatty() and done != self._total else "\n"
        sys.stderr.write(f"{done}/{self._total} {what}, {seconds:.0f} s{end}")
        sys.stderr.flush()


class Summary:
    """What many seeds had in common."""

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.events = 0
        self.committed = 0
        self.cpu_seconds = 0.0
        self.slowest_ms = 0.0
        self.reached: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        self.seeds.append(outcome.seed)
        self.events += outcome.events
        self.committed += outcome.committed
        self.cpu_seconds += outcome.cpu_seconds
        self.slowest_ms = max(self.slowest_ms, outcome.progress_ms)
        self.reached.update(outcome.reached)

    @property
    def never(self) -> list[str]:
        return [state for state in RARE_STATES if not self.reached[state]]

    def as_json(self) -> str:
        fields = {
            "seeds": len(self.seeds),
            "first": self.seeds[0],
            "last": self.seeds[-1],
            "events": self.events,
            "committed": self.committed,
            "cpu_seconds": round(self.cpu_seconds, 1),
            "progress_ms_max": round(self.slowest_ms),
            "reached": {state: self.reached[state] for state in RARE_STATES},
            "never": self.never,
        }
        return json.dumps(fields)

    def as_text(self) -> str:
        count = len(self.seeds)
        lines = [
            f"seeds {self.seeds[0]} to {self.seeds[-1]}: all {count} clean",
            f"{self.events:,} events, {self.committed:,} committed offsets",
            f"{self.cpu_seconds / count:.2f} CPU seconds a seed",
            f"progress at most {self.slowest_ms / 1000:.1f} s after healing",
        ]
        for state in RARE_STATES:
            mark = "" if self.reached[state] else "  NEVER REACHED"
            lines.append(f"  {state:<46} {self.reached[state]:>9,}{mark}")
        return "\n".join(lines)


def failure_text(outcome: Outcome) -> str:
    """The end of the story, then what it takes to see it again."""
    return "\n".join(
        [
            *outcome.story,
            "",
            f"seed {outcome.seed} failed: {outcome.failure}",
            f"options: {outcome.options}",
            f"replay: {replay_command(outcome)}",
        ]
    )


def replay_command(outcome: Outcome) -> str:
    kind = outcome.options.kind
    swarm = Options.swarm(outcome.seed, kind)
    off = [fault for fault in swarm.faults if fault not in outcome.options.faults]
    words = f" KIND={kind}" if kind != kind_of(outcome.seed) else ""
    words += f" WITHOUT={','.join(off)}" if off else ""
    return f"make sim SEED={outcome.seed} SEEDS=1 TRACE=1{words}"


def mutants_text(catches: Sequence[Catch]) -> str:
    lines = [f"| {'mutant':<46} | {'caught by':<44} | seeds | CPU s |", "|---|---|---|---|"]
    for catch in catches:
        verdict = catch.rule or (f"BROKEN: {catch.broken}" if catch.broken else "SURVIVED")
        lines.append(
            f"| {catch.mutant:<46} | {verdict:<44} | {catch.seeds:>5} | {catch.cpu_seconds:>5.1f} |"
        )
    return "\n".join(lines)


def mutants_json(catches: Sequence[Catch]) -> str:
    return json.dumps([asdict(catch) for catch in catches])
