"""What was committed, as metadata."""

from chaos.sim.metadata_ledger import bare
from metadata_log.image import EMPTY
from tests.chaos.sim.governed import start_scripted


def test_the_image_at_every_offset_is_known() -> None:
    ledger = start_scripted().metadata
    assert ledger.image_at(0) == EMPTY
    assert ledger.image_at(ledger.end) == bare(ledger.image)
    assert ledger.image_at(ledger.end + 1) is None
    assert sorted(ledger.image.brokers) == [2, 3, 4]
