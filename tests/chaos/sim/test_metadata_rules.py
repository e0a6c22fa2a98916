"""Planted images that break a rule."""

import pytest

from chaos.sim.metadata_rules import ImageRules
from chaos.sim.sightings import Sightings
from kraftlog._check import InvariantViolation
from metadata_log.image import EMPTY, Image
from metadata_log.records import (
    Broker,
    BrokerChange,
    FenceCause,
    RegisterBroker,
    UnregisterBroker,
)
from metadata_log.replay import replay
from tests.chaos.sim.governed import start_scripted


class Nowhere:
    def __init__(self, applied: int | None = None) -> None:
        self._applied = applied

    def applied_by(self, broker: Broker) -> int | None:  # noqa: ARG002 - the protocol's
        return self._applied


def one_broker() -> Image:
    return start_scripted().metadata.image


def test_a_broker_epoch_that_was_used_before_does_not_come_again() -> None:
    image, rules = one_broker(), ImageRules(Sightings(), Nowhere())
    broker = image.brokers[2]
    without = replay(image, UnregisterBroker(2, broker.epoch), image.end_offset)
    again = replay(without, RegisterBroker(broker), without.end_offset)
    rules.check(EMPTY, image)
    rules.check(image, without)
    with pytest.raises(InvariantViolation, match="M6 a broker epoch does not rise"):
        rules.check(without, again)


def test_a_broker_is_unfenced_when_it_has_caught_up() -> None:
    image = one_broker()
    epoch, offset = image.brokers[2].epoch, image.end_offset
    fence = BrokerChange(
        broker_id=2, broker_epoch=epoch, fenced=True, fence_cause=FenceCause.SESSION_TIMEOUT
    )
    fenced = replay(image, fence, offset)
    unfenced = replay(
        fenced, BrokerChange(broker_id=2, broker_epoch=epoch, fenced=False), offset + 1
    )
    ImageRules(Sightings(), Nowhere(applied=offset + 1)).check(fenced, unfenced)
    with pytest.raises(InvariantViolation, match="M5 unfenced before it caught up"):
        ImageRules(Sightings(), Nowhere(applied=offset)).check(fenced, unfenced)
