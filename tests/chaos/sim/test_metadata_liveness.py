"""Who must serve again."""

from chaos.sim.metadata_liveness import _is_led
from metadata_log.image import EMPTY
from metadata_log.records import PartitionState
from tests.chaos.sim.governed import start_scripted


def test_a_partition_needs_a_leader_if_there_can_be_one() -> None:
    waiting = PartitionState((2,), (), -1, elr=(2,))
    assert _is_led(EMPTY, waiting)
    assert not _is_led(start_scripted().metadata.image, waiting)
    assert _is_led(EMPTY, PartitionState((2,), (2,), 2))
