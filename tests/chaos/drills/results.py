"""Results made by hand, for tests of what is done with them."""

from pathlib import Path

from chaos.drills.result import Result
from chaos.drills.verdict import Criterion
from chaos.live.run_directory import RunDirectory

COUNTS = {"acked": 10, "read": 10, "lost": 0, "duplicated": 0, "reordered": 0, "unknown": 0}


def result(
    root: Path, measured: float = 1.0, *, seed: int = 1, anomalies: tuple[str, ...] = ()
) -> Result:
    directory = RunDirectory.create(root, "baseline", seed)
    directory.write_meta({"drill": "baseline", "seed": seed, "profile": "fast"})
    directory.history.write_text('{"t":0.1,"kind":"event","what":"phase","phase":"start"}\n')
    criterion = Criterion("u_write", measured, 2.5, "s", "no ack for", "session", measured / 1.5)
    return Result(
        drill="baseline",
        seed=seed,
        directory=directory,
        criteria=(criterion,),
        anomalies=anomalies,
        counts=COUNTS,
    )
