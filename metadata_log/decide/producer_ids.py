"""Producer ids, handed out to brokers in blocks so that they need not ask for each."""

from dataclasses import dataclass

from kraftlog._check import invariant
from metadata_log.decide import Decision, caused
from metadata_log.decide.brokers import check_epoch
from metadata_log.image import Image
from metadata_log.records import Cause, CauseKind, ProducerIds

BLOCK_SIZE = 1_000
PRODUCER_ID_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first_id: int
    count: int


def allocate_producer_ids(
    image: Image, broker_id: int, broker_epoch: int
) -> Decision[ProducerIdBlock]:
    """The next block. It is this broker's alone, whether it uses it or not."""
    check_epoch(image, broker_id, broker_epoch)
    first = image.next_producer_id
    after = first + BLOCK_SIZE
    invariant(after <= PRODUCER_ID_MAX, "producer ids are used up", first=first)
    cause = Cause(CauseKind.PRODUCER_IDS, f"for broker {broker_id}")
    record = ProducerIds(broker_id, broker_epoch, after)
    return Decision(caused(cause, record), ProducerIdBlock(first, BLOCK_SIZE))
