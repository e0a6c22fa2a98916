"""Without a fault: what a healthy cluster costs, and that the harness itself finds nothing."""

import time

from chaos.drills.catalog import drill
from chaos.live.measure import percentile
from chaos.live.stage import Stage

CALM_SECONDS = 20.0


@drill(1, "baseline", "20 s of load and no fault", in_chaos=True)
def baseline(stage: Stage) -> None:
    begun = time.monotonic()
    stage.run_for(CALM_SECONDS)
    now = time.monotonic()
    stage.measure("p99", percentile(stage.load.latencies(begun, now), 0.99))
    stage.measure("u_write", stage.load.write_gap(begun, now))
    stage.measure("errors", float(stage.load.errors.total()))
