"""Features: what the whole cluster has agreed to use (KIP-584).

A level is finalized only if every registered broker, and this controller, can work with it. It goes
down only if the caller says so, and `unsafe` where something that was written would be lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kraftlog.errors import InvalidRequest, InvalidUpdateVersion, KraftError
from metadata_log.decide import Decision, Outcome, admin_cause, caused
from metadata_log.image import Image
from metadata_log.records import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureRange,
    Record,
)

SUPPORTED: Mapping[str, FeatureRange] = {METADATA_VERSION: FeatureRange(METADATA_VERSION, 1, 1)}
"""What this version of the program can work with. Level 1 is all there is so far."""


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    name: str
    level: int
    """0 removes it."""
    allow_downgrade: bool = False
    unsafe: bool = False


@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False


def update_features(
    image: Image,
    request: UpdateFeatures,
    *,
    supported: Mapping[str, FeatureRange] = SUPPORTED,
    by: str = "",
) -> Decision[tuple[Outcome[None], ...]]:
    """Finalize levels; all of them or none, since features may need one another."""
    names = [each.name for each in request.updates]
    if len(set(names)) < len(names):
        raise InvalidRequest("a feature is named twice in one request")
    records: list[Record] = []
    outcomes: list[Outcome[None]] = []
    for each in request.updates:
        try:
            _check(image, each, supported)
        except KraftError as error:
            outcomes.append(Outcome(None, error))
            continue
        if image.features.get(each.name, 0) != each.level:
            records.append(FeatureLevel(each.name, each.level))
        outcomes.append(Outcome(None))
    refused = request.validate_only or any(outcome.error for outcome in outcomes)
    cause = admin_cause("update features", by)
    return Decision(() if refused else caused(cause, *records), tuple(outcomes))


def _check(image: Image, update: FeatureUpdate, supported: Mapping[str, FeatureRange]) -> None:
    name, level = update.name, update.level
    if level < 0 or (level == 0 and name == METADATA_VERSION):
        raise InvalidUpdateVersion(f"{name} has no level {level}")
    _check_range(f"this controller: {name}", supported.get(name), level)
    for broker in image.sorted_brokers():
        able = next((each for each in broker.features if each.name == name), None)
        _check_range(f"broker {broker.id}: {name}", able, level)
    present = image.features.get(name, 0)
    if level < present and not (update.allow_downgrade or update.unsafe):
        raise InvalidUpdateVersion(
            f"{name} is at level {present}; {level} would be a downgrade",
            hint="say that a downgrade is meant",
        )
    if level < present and name == METADATA_VERSION and not update.unsafe:
        raise InvalidUpdateVersion(
            f"{name} {level} may not know records that {present} has written",
            hint="an unsafe downgrade drops what the older level does not know",
        )


def _check_range(who: str, able: FeatureRange | None, level: int) -> None:
    if level == 0:
        return  # everybody can do without
    if able is None or not able.min_level <= level <= able.max_level:
        can = f"{able.min_level} to {able.max_level}" if able else "none"
        raise InvalidUpdateVersion(f"{who}: level {level} is asked for, and {can} is supported")
