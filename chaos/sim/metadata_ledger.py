"""What was committed, as metadata: the image at every offset, and which request is done where.

Every committed batch is replayed here, by the same fold as everywhere, and judged on its way
(`metadata_rules`). The state of a node at an offset is compared with the image at that offset (M5).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from chaos.sim.ledger import Entry, Ledger
from chaos.sim.metadata_rules import ImageRules
from chaos.sim.sightings import Sightings
from kraftlog._check import invariant
from metadata_log.codec import decode_record
from metadata_log.image import EMPTY, Image
from metadata_log.records import RequestDone
from metadata_log.replay import replay_all
from quorum.core.messages import VoterSet


def bare(image: Image) -> Image:
    """Without its offset: control records, which change nothing, count for one and not another."""
    return replace(image, end_offset=0)


@dataclass(frozen=True, slots=True)
class Done:
    """A request of a client, as the log has it."""

    offset: int
    result: bytes
    records: int
    """In its batch, this one included."""
    before: Image
    after: Image


class MetadataLedger(Ledger):
    def __init__(self, voters: VoterSet, rules: ImageRules, sightings: Sightings) -> None:
        super().__init__(voters)
        self.image = EMPTY
        """After all that is committed."""
        self.done: dict[tuple[bytes, int], Done] = {}
        self._rules = rules
        self.on_commit: Callable[[Image, Image], None] = lambda _before, _after: None
        """Hears of every batch: the images before and after it."""
        self._sightings = sightings

    def empty_state(self) -> object:
        return bare(EMPTY)

    def image_at(self, offset: int) -> Image | None:
        found = self.digest_at(offset)
        return found if isinstance(found, Image) else None

    def play(self, state: object, entry: Entry, values: tuple[bytes, ...]) -> object:
        before = self.image
        same = bare(before) == state
        invariant(same, "M5 a batch that does not follow what was committed", entry=entry)
        records = [decode_record(value) for value in values]
        after = self.image = replay_all(before, records, entry.base_offset)
        for offset, record in enumerate(records, entry.base_offset):
            if isinstance(record, RequestDone):
                name = (record.client_id, record.request_id)
                invariant(name not in self.done, "M3 done twice", request=name, offset=offset)
                self.done[name] = Done(offset, record.result, len(records), before, after)
        self._rules.check(before, after)
        self.on_commit(before, after)
        return bare(after)
