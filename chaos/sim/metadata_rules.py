"""The rules of committed metadata (M5, M6, M7, M9), judged for every batch as it is committed.

What holds in every image, and between two of them, `metadata_log.rules` knows. Here is what needs
more than two images: who was ever registered, and how far a broker really is.
"""

from typing import Protocol

from chaos.sim.sightings import Sightings
from kraftlog._check import invariant
from metadata_log.image import Image
from metadata_log.records import NO_LEADER, Broker, PartitionState
from metadata_log.rules import broken, broken_since


class Applied(Protocol):
    def applied_by(self, broker: Broker) -> int | None:
        """How far this incarnation of a broker has applied the log; None: it is not there."""
        ...


class ImageRules:
    def __init__(self, sightings: Sightings, applied: Applied) -> None:
        self._sightings = sightings
        self._applied = applied
        self._epochs: dict[int, int] = {}
        """The highest epoch that each broker was ever registered with."""

    def check(self, before: Image, after: Image) -> None:
        for finding in (*broken_since(before, after), *broken(after)):
            rule, _, facts = finding.partition(":")
            invariant(False, rule, facts=facts, offset=after.end_offset)
        for broker in after.sorted_brokers():
            was = before.brokers.get(broker.id)
            if was is not broker:
                self._check_broker(was, broker)
            if broker.is_fenced:
                self._check_fenced(after, broker)
        self._note_changes(before, after)

    # -- brokers

    def _check_broker(self, was: Broker | None, now: Broker) -> None:
        known = self._epochs.get(now.id, -1)
        facts = {"broker": now.id, "was": was, "now": now}
        if was is None or was.incarnation_id != now.incarnation_id:
            invariant(now.epoch > known, "M6 a broker epoch does not rise", known=known, **facts)
            self._epochs[now.id] = now.epoch
            self._sightings.note("broker registered" if was is None else "broker registered again")
            return
        if was.is_fenced == now.is_fenced:
            return
        if now.is_fenced:
            why = now.fence_cause.name if now.fence_cause else ""
            self._sightings.note(f"broker fenced: {why}")
            return
        self._sightings.note("broker unfenced")
        applied = self._applied.applied_by(now)
        if applied is not None:
            caught_up = applied > was.fenced_at
            invariant(caught_up, "M5 unfenced before it caught up", applied=applied, **facts)

    def _check_fenced(self, image: Image, broker: Broker) -> None:
        for topic in image.topics.values():
            for number, state in enumerate(topic.partitions):
                facts = {"broker": broker, "topic": topic.name, "partition": number, "is": state}
                invariant(broker.id not in state.isr, "M7 a fenced broker is in an ISR", **facts)
                invariant(broker.id != state.leader, "M7 a fenced broker leads", **facts)

    # -- what is rare

    def _note_changes(self, before: Image, after: Image) -> None:
        for topic in after.topics.values():
            known = before.topics.get(topic.id)
            if known is None or known is topic:
                continue
            for was, now in zip(known.partitions, topic.partitions, strict=False):
                if was is not now:
                    self._note_change(was, now)

    def _note_change(self, was: PartitionState, now: PartitionState) -> None:
        if now.leader == NO_LEADER:
            self._sightings.note("partition without a leader")
        elif now.leader != was.leader:
            self._sightings.note("partition leader elected")
            if now.leader not in (*was.isr, *was.elr):
                self._sightings.note("unclean election")
        if now.elr:
            self._sightings.note("eligible leader replica")
        if set(now.isr) < set(was.isr):
            self._sightings.note("ISR shrunk")
        elif set(now.isr) > set(was.isr):
            self._sightings.note("ISR grown")
        if was.is_reassigning and not now.is_reassigning:
            self._sightings.note("reassignment finished")
