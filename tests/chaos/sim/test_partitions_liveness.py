"""Whether records are taken again."""

from chaos.sim.options import Options
from chaos.sim.partitions_world import PartitionsWorld


def test_there_must_be_new_acknowledgements_after_healing() -> None:
    world = PartitionsWorld(1, Options(kind="partitions", voters=1, brokers=3, safety_ms=2_000))
    world.run()
    assert world.progress_ms > 0
