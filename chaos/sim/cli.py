"""`python -m chaos.sim`: run seeds, or hunt mutants. Exit 1: something was found."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import cpu_count

from chaos.sim import report
from chaos.sim.hunting import Catch, hunt_all
from chaos.sim.mutants import MUTANTS
from chaos.sim.options import ALL_FAULTS, KINDS, Options, kind_of
from chaos.sim.runner import Outcome, run_seed, run_seeds, shrink


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    if arguments.command == "mutants":
        return _hunt(arguments)
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    if arguments.trace or arguments.without:
        return _replay(seeds, arguments.without.split(",") if arguments.without else [], arguments)
    return _run(seeds, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.sim", description="The quorum in simulated worlds, one per seed."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run seeds")
    run.add_argument("--seeds", type=_positive, default=200, help="how many (default 200)")
    run.add_argument("--seed", type=int, default=1, help="the first one (default 1)")
    run.add_argument("--kind", choices=KINDS, help="all of this kind (default: each in turn)")
    run.add_argument("--trace", action="store_true", help="print every event as it happens")
    run.add_argument("--without", type=_faults, default="", help="turn these faults off: a,b")
    mutants = commands.add_parser("mutants", help="break the code and see that a rule notices")
    mutants.add_argument("--only", default="", help="those whose name contains this")
    mutants.add_argument("--seeds", type=_positive, help="at most so many for each")
    for command in (run, mutants):
        command.add_argument("--workers", type=_positive, default=cpu_count(), help="processes")
        command.add_argument("-o", "--output", choices=["text", "json"], default="text")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def _faults(text: str) -> str:
    unknown = [name for name in text.split(",") if name and name not in ALL_FAULTS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no fault is called {unknown[0]}: {', '.join(ALL_FAULTS)}"
        )
    return text


# -- seeds


def _run(seeds: Sequence[int], arguments: argparse.Namespace) -> int:
    sys.stderr.write(f"seeds {seeds[0]} to {seeds[-1]}\n")
    summary, progress = report.Summary(), report.Progress(len(seeds))
    for number, outcome in enumerate(run_seeds(seeds, arguments.workers, arguments.kind), 1):
        if outcome.failure:
            sys.stderr.write(f"seed {outcome.seed} failed; shrinking ...\n")
            print(report.failure_text(shrink(outcome)))
            return 1
        summary.add(outcome)
        progress.show(number)
    print(summary.as_json() if arguments.output == "json" else summary.as_text())
    return 0


def _replay(seeds: Sequence[int], without: Sequence[str], arguments: argparse.Namespace) -> int:
    """One after the other, in this process, so that each tells its story in order."""
    failed = 0
    for seed in seeds:
        sys.stderr.write(f"seed {seed}\n")
        options = Options.swarm(seed, arguments.kind or kind_of(seed))
        for fault in without:
            options = options.without(fault)
        outcome = run_seed(seed, options, live_trace=arguments.trace)
        failed += bool(outcome.failure)
        print(_verdict(outcome, told=arguments.trace))
    return 1 if failed else 0


def _verdict(outcome: Outcome, *, told: bool) -> str:
    if not outcome.failure:
        return f"seed {outcome.seed}: clean, trace {outcome.trace_hash}"
    return report.failure_text(replace(outcome, story=()) if told else outcome)


# -- mutants


def _hunt(arguments: argparse.Namespace) -> int:
    chosen = [mutant for mutant in MUTANTS if arguments.only in mutant.name]
    if arguments.seeds:
        chosen = [replace(mutant, seeds=arguments.seeds) for mutant in chosen]
    progress = report.Progress(len(chosen))
    catches = []
    for number, catch in enumerate(hunt_all(chosen, arguments.workers), 1):
        catches.append(catch)
        progress.show(number, "mutants")
    is_json = arguments.output == "json"
    print(report.mutants_json(catches) if is_json else report.mutants_text(catches))
    all_caught = all(catch.rule for catch in catches)
    return 0 if _pass_as_they_are(catches, arguments.workers) and all_caught else 1


def _pass_as_they_are(catches: Sequence[Catch], workers: int) -> bool:
    """Whatever caught the mutants must be silent about the code as it is."""
    for kind in KINDS:
        most = max((catch.seeds for catch in catches if catch.kind == kind), default=0)
        sys.stderr.write(f"the same {most} {kind} seeds without a mutant\n")
        progress = report.Progress(most)
        for number, outcome in enumerate(run_seeds(range(1, most + 1), workers, kind), 1):
            progress.show(number)
            if outcome.failure:
                print(report.failure_text(outcome))
                return False
    return True
