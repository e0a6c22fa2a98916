"""`kraftctl drill ...`"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kraftctl.exit_codes import OK, UNHEALTHY, NotFound
from kraftctl.output import Json, table
from kraftctl.session import Session, command, output_option
from kraftctl.timeline import Timeline
from kraftlog.errors import ConfigError

if TYPE_CHECKING:
    from chaos.drills.catalog import Drill
    from chaos.drills.runner import RunOptions
    from chaos.drills.suite import Summary
    from chaos.live.run_directory import RunDirectory

KRAFTLOG, PYSYNCOBJ = ENGINES = ("kraftlog", "pysyncobj")
COLUMNS = ("t_controller", "u_write", "converge")
"""Targets with a column of their own: those that most drills have."""
FOUND = ("DRILL", "VERDICT", "RUNS", *map(str.upper, COLUMNS), "OTHERS", "LOST/DUP/REORD", "RUN")


@click.command()
@output_option
@command
def ls(session: Session) -> int:
    """All drills, and which of them `make chaos` runs."""
    from chaos.drills.catalog import all_drills  # noqa: PLC0415 - gRPC takes its time to load

    rows = [(each.number, each.name, each.in_chaos, each.title) for each in all_drills()]
    keys = ("number", "name", "in_chaos", "title")
    data: Json = [dict(zip(keys, row, strict=True)) for row in rows]
    session.output.show(data, table(("#", "NAME", "MAKE CHAOS", "WHAT HAPPENS"), rows))
    return OK


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--suite", type=click.Choice(["chaos", "all"]), help="Many drills instead of names.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, help="Chooses who is hit.")
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, help="With the next seeds.")
@click.option("--profile", "timing", type=click.Choice(["fast", "kafka"]), default="fast")
@click.option(
    "--backend",
    type=click.Choice(["embedded", "toxi", "process"]),
    default="embedded",
    help="What stands on the edges; process: nothing, for drills that only signal.",
)
@click.option("--engine", type=click.Choice(ENGINES), default=KRAFTLOG, help="Whose quorum.")
@click.option("--out", metavar="DIR", help="Where the directories of runs go.")
@click.option("--only-safety", is_flag=True, help="Judge no time: the machine is busy.")
@output_option
@command
def run(session: Session, /, names: tuple[str, ...], suite: str | None, **options: object) -> int:
    """Break a real cluster and judge what its clients saw. Exit code 3: it failed."""
    from chaos.drills.suite import run_suite  # noqa: PLC0415

    drills = _chosen(names, suite, str(options.get("engine")))
    repeat = options.pop("repeat")
    found = run_suite(
        drills, _run_options(session, options), repeat=repeat if isinstance(repeat, int) else 1
    )
    return _show(session, found)


@click.command()
@click.argument("directory", metavar="RUN", type=str)
@click.option("--out", metavar="DIR", help="Where the directories of runs are, and go.")
@output_option
@command
def replay(session: Session, directory: str, out: str | None) -> int:
    """Run a drill again as it was run: same seed, profile and backend."""
    from chaos.drills.catalog import find_drill  # noqa: PLC0415
    from chaos.drills.suite import run_suite  # noqa: PLC0415
    from chaos.live.run_directory import META  # noqa: PLC0415

    meta = _run_directory(session, directory, out).read(META)
    names = ("seed", "profile", "backend", "engine", "only_safety")
    options: dict[str, object] = {name: meta.get(name) for name in names}
    options["timing"] = options.pop("profile")
    options["out"] = out
    drill = find_drill(str(meta.get("drill")))
    return _show(session, run_suite([drill], _run_options(session, options)))


@click.command()
@click.argument("history", metavar="RUN|HISTORY", type=str)
@click.option("--out", metavar="DIR", help="Where the directories of runs are.")
@output_option
@command
def verify(session: Session, history: str, out: str | None) -> int:
    """Judge a history once more. Exit code 3: something is wrong with it."""
    from chaos.checkers import judge  # noqa: PLC0415
    from chaos.history import read_history  # noqa: PLC0415

    path = Path(history)
    if not path.is_file():
        path = _run_directory(session, history, out).history
    if not path.is_file():
        raise NotFound(f"{path} is not there", hint="the run did not get so far")
    judgement = judge(read_history(path))
    findings = [str(each) for each in judgement.findings]
    data: Json = {
        "history": str(path),
        "verdict": "PASS" if judgement.is_good else "FAIL",
        "counts": dict(judgement.counts),
        "findings": list(findings),
    }
    verdict = "PASS" if judgement.is_good else "FAIL"
    session.output.show(data, "\n".join([*findings, f"VERDICT {verdict}  {judgement.words}"]))
    return OK if judgement.is_good else UNHEALTHY


@click.command()
@click.argument("run_ids", metavar="[RUN]...", nargs=-1)
@click.option("--out", metavar="DIR", help="Where the directories of runs are.")
@click.option("--purge", is_flag=True, help="Remove the directories of the runs, too.")
@output_option
@command
def clean(session: Session, run_ids: tuple[str, ...], out: str | None, *, purge: bool) -> int:
    """End processes and mounts that a killed run left. A run that still runs is left alone."""
    from chaos.live.run_directory import runs_in  # noqa: PLC0415

    root = _root(session, out)
    runs = [_run_directory(session, each, out) for each in run_ids] or list(runs_in(root))
    rows = [_clean_one(each, purge=purge) for each in runs]
    keys = ("run", "state", "processes", "mounts")
    data: Json = [dict(zip(keys, row, strict=True)) for row in rows]
    text = table(("RUN", "STATE", "PROCESSES", "MOUNTS"), rows) if rows else f"no runs in {root}"
    session.output.show(data, text)
    return OK


def _clean_one(directory: "RunDirectory", *, purge: bool) -> tuple[str, str, int, int]:
    import shutil  # noqa: PLC0415

    from chaos.live import leftovers  # noqa: PLC0415

    if directory.is_running():
        return directory.run_id, "running", 0, 0
    found = leftovers.remove(str(directory.path))
    if purge:
        shutil.rmtree(directory.path, ignore_errors=True)
    state = "removed" if purge else "clean"
    return directory.run_id, state, len(found.processes), len(found.mounts)


# -- helpers


def _chosen(names: Sequence[str], suite: str | None, engine: str) -> "list[Drill]":
    """Those of a suite that the engine can play; one that was named and cannot be is refused."""
    from chaos.drills.catalog import all_drills, find_drill  # noqa: PLC0415
    from chaos.peers.engine import PEER_DRILLS, check_playable  # noqa: PLC0415

    if bool(names) == bool(suite):
        raise ConfigError(
            "which drills?", hint="name some, or say --suite chaos; `kraftctl drill ls` shows them"
        )
    if names:
        drills = [find_drill(name) for name in names]
        for drill in drills if engine == PYSYNCOBJ else ():
            check_playable(drill.name)
        return drills
    drills = [each for each in all_drills() if each.in_chaos or suite == "all"]
    return [each for each in drills if engine != PYSYNCOBJ or each.name in PEER_DRILLS]


def _run_options(session: Session, options: dict[str, object]) -> "RunOptions":
    from chaos.drills.runner import RunOptions  # noqa: PLC0415

    seed, out = options.get("seed"), options.get("out")
    timeline = Timeline(sys.stderr)
    return RunOptions(
        out=Path(_root(session, None if out is None else str(out))),
        seed=seed if isinstance(seed, int) else 1,
        profile=str(options.get("timing") or "fast"),
        backend=str(options.get("backend") or "embedded"),
        engine=str(options.get("engine") or KRAFTLOG),
        only_safety=bool(options.get("only_safety")),
        say=timeline.say,
        show=timeline.show,
    )


def _root(session: Session, out: str | None) -> str:
    return out or os.path.join(session.places.data, "drills")


def _run_directory(session: Session, name: str, out: str | None) -> "RunDirectory":
    """By its path, or by the id of the run."""
    from chaos.live.run_directory import META, RunDirectory  # noqa: PLC0415

    for path in (Path(name), Path(_root(session, out)) / name):
        if (path / META).is_file():
            return RunDirectory(path.resolve())
    raise NotFound(f"there is no run {name!r}", hint="give its id or the path of its directory")


def _show(session: Session, found: "Sequence[Summary]") -> int:
    rows = [_row(each) for each in found]
    data: Json = [_document(each) for each in found]
    reasons = [line for each in found for line in each.words()]
    failed = sum(each.verdict == "FAIL" for each in found)
    verdict = f"VERDICT {'FAIL' if failed else 'PASS'}  {len(found)} drills, {failed} failed"
    reports = [f"report {path}" for each in found for path in each.reports()]
    session.output.show(data, "\n".join([table(FOUND, rows), *reasons, *reports, verdict]))
    return UNHEALTHY if failed else OK


def _row(summary: "Summary") -> tuple[object, ...]:
    cells = {
        each.name: f"{each.measured:.2f} <= {each.target:g}{'' if each.ok else ' MISSED'}"
        for each in summary.criteria()
    }
    others = [f"{name} {cell}" for name, cell in cells.items() if name not in COLUMNS]
    counts = [each.counts for each in summary.results]
    bad = "/".join(
        str(sum(each[name] for each in counts if name in each))
        for name in ("lost", "duplicated", "reordered")
        if any(name in each for each in counts)  # a quorum alone has no records
    )
    last = str(summary.results[-1].directory.path) if summary.results else summary.skipped
    return (
        summary.drill.name,
        summary.verdict,
        len(summary.results),
        *(cells.get(name, "-") for name in COLUMNS),
        ", ".join(others) or "-",
        bad or "-",
        last,
    )


def _document(summary: "Summary") -> Json:
    return {
        "drill": summary.drill.name,
        "verdict": summary.verdict,
        "skipped": summary.skipped,
        "criteria": [each.document() for each in summary.criteria()],
        "runs": [
            {
                "seed": each.seed,
                "verdict": each.verdict,
                "directory": str(each.directory.path),
                "report": str(each.report),
                "counts": dict(each.counts),
                "anomalies": list(each.anomalies),
                "words": each.words,
            }
            for each in summary.results
        ],
    }
