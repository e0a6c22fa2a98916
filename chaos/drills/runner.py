"""Runs one drill: stage, faults, heal, final read, checks, verdict, files."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chaos.drills.catalog import Drill
from chaos.drills.result import Result, write_result
from chaos.drills.safety import Safety, judge_safety
from chaos.drills.targets import targets_of
from chaos.drills.verdict import Criterion, judge_targets, safety_only
from chaos.live import guard, leftovers
from chaos.live.backends import PROCESS, open_proxies
from chaos.live.edges import Proxies
from chaos.live.progress import Show, shown
from chaos.live.run_directory import RunDirectory
from chaos.live.stage import WARM_SECONDS, Say, Stage, StageOptions
from chaos.live.timing import Timing, timing_of
from chaos.peers.engine import PEER_DRILLS, check_playable, run_on_peer
from chaos.peers.quorums import KRAFTLOG, PYSYNCOBJ
from kraftlog.errors import KraftError


def _quiet(text: str, kind: str) -> None:
    del text, kind


def _hidden(rows: Mapping[str, str]) -> None:
    del rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    out: Path
    seed: int = 1
    profile: str = "fast"
    backend: str = "embedded"
    engine: str = KRAFTLOG
    only_safety: bool = False
    """Judge safety and convergence, and no time: for machines that do other things, too."""
    warm_seconds: float = WARM_SECONDS
    duration: float | None = None
    say: Say = field(default=_quiet)
    show: Show = field(default=_hidden)
    """How it is at this moment, as a few rows."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of the acts, before anybody has judged."""

    measured: Mapping[str, float]
    failures: Sequence[str]


def run_drill(drill: Drill, options: RunOptions) -> Result:
    """The verdict, and all files of the run. What the harness itself cannot do is raised."""
    timing = timing_of(options.profile)
    if options.engine == PYSYNCOBJ:
        check_playable(drill.name)
    directory = RunDirectory.create(options.out, drill.name, options.seed)
    directory.write_meta(_meta(drill, options))
    with _guarded(directory), open_proxies(options.backend, options.seed) as (proxies, pid):
        if pid is not None:
            leftovers.note_pid(str(directory.path), pid)
        play = _play_on_peer if options.engine == PYSYNCOBJ else _play
        played = play(drill, options, directory, proxies)
    safety = judge_safety(directory, played.failures)
    criteria = _criteria(drill, options, played.measured, timing)
    result = _result(drill, options, directory, safety, criteria)
    write_result(result)
    if result.passed:
        directory.drop_data()
    return result


def _play(drill: Drill, options: RunOptions, directory: RunDirectory, proxies: Proxies) -> Played:
    stage_options = StageOptions(
        timing=timing_of(options.profile),
        seed=options.seed,
        brokers=drill.brokers,
        replication_factor=drill.replication_factor,
        config=drill.config,
        topic_config=drill.topic_config,
        hooks=drill.hooks,
        warm_seconds=options.warm_seconds,
        duration=options.duration,
    )
    stage = Stage(directory, proxies, stage_options, options.say)
    stage.checks_edges = options.backend != PROCESS
    trouble = _perform(drill, stage, options.show)
    return Played(stage.measured, [*stage.failures, *trouble])


def _play_on_peer(
    drill: Drill, options: RunOptions, directory: RunDirectory, proxies: Proxies
) -> Played:
    try:
        run = run_on_peer(drill.name, directory.history, directory.cluster, proxies, options.say)
    except (KraftError, TimeoutError) as error:
        return Played({}, [_broke_off(options.say, error)])
    return Played(run.measured, run.failures)


def _perform(drill: Drill, stage: Stage, show: Show) -> list[str]:
    """All acts of the play; what kept it from being finished."""
    try:
        with stage, shown(stage, show):
            drill.steps(stage)
            stage.heal()
            stage.run_for(0.5)
            stage.finish()
    except (KraftError, TimeoutError) as error:
        return [_broke_off(stage.say, error)]
    return []


def _broke_off(say: Say, error: Exception) -> str:
    say(f"the drill broke off: {error}", "bad")
    return f"the drill broke off: {error}"


def _criteria(
    drill: Drill, options: RunOptions, measured: Mapping[str, float], timing: Timing
) -> list[Criterion]:
    if options.only_safety:
        return safety_only(measured)
    targets = targets_of(drill.name, options.profile)
    if options.engine == PYSYNCOBJ:
        # No records, so nothing that is said about them.
        names = ("converge", PEER_DRILLS[drill.name].measures)
        targets = [each for each in targets if each.name in names]
    return judge_targets(measured, targets, timing)


def _result(
    drill: Drill,
    options: RunOptions,
    directory: RunDirectory,
    safety: Safety,
    criteria: list[Criterion],
) -> Result:
    return Result(
        drill=drill.name,
        seed=options.seed,
        directory=directory,
        criteria=tuple(criteria),
        anomalies=safety.anomalies,
        counts=safety.counts,
    )


def _meta(drill: Drill, options: RunOptions) -> dict[str, str | int | float | bool]:
    return {
        "drill": drill.name,
        "title": drill.title,
        "seed": options.seed,
        "profile": options.profile,
        "backend": options.backend,
        "engine": options.engine,
        "only_safety": options.only_safety,
        "cores": os.cpu_count() or 0,
        "load_before": round(os.getloadavg()[0], 2),
        "started_at": time.time(),
    }


@contextmanager
def _guarded(directory: RunDirectory) -> Iterator[None]:
    """Whatever becomes of us, nothing of the run is left."""
    watching = guard.start(str(directory.path))
    try:
        yield
    finally:
        guard.finish(watching)
