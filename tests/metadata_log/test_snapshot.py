"""image -> records -> image is the identity, for every record type (KAFKA-15860, Q11). The random
histories of test_histories.py ask the same of images that grew by decisions.
"""

from typing import get_args

import pytest

from metadata_log import replay
from metadata_log.codec import decode
from metadata_log.image import EMPTY
from metadata_log.records import (
    BrokerChange,
    CauseKind,
    FenceCause,
    NoOp,
    PartitionChange,
    Record,
    RemoveTopic,
    UnregisterBroker,
)
from metadata_log.replay import load, load_by_pieces
from metadata_log.snapshot import digest, write_records, write_values
from tests.metadata_log.worlds import World


def rich() -> World:
    """Something of everything."""
    world = World()
    for broker in (1, 2, 3):
        world.come_back(broker)
    world.configure("", "min.insync.replicas", "2")
    world.create("a", [(1, 2, 3), (2, 3, 1)])
    world.create("b", [(1, 2)])
    world.configure("a", "retention.ms", "5")
    world.reassign("b", 0, (3,))
    world.take_producer_ids(1)
    world.fence(1, FenceCause.METADATA_LAG)
    world.die(2)
    return world


def test_every_kind_of_record_is_written_or_is_a_change_of_one_that_is() -> None:
    image = rich().cluster.image
    written = {type(record) for record in write_records(image)}
    changes = {BrokerChange, PartitionChange, RemoveTopic, UnregisterBroker, NoOp}
    assert written == set(get_args(Record)) - changes
    assert load(write_records(image), image.end_offset) == image


def test_the_values_of_a_snapshot_file_say_that_they_are_one() -> None:
    image = rich().cluster.image
    decoded = [decode(value) for value in write_values(image)]
    assert {each.cause.kind for each in decoded} == {CauseKind.SNAPSHOT}
    assert load((each.record for each in decoded), image.end_offset) == image


@pytest.mark.parametrize("at_once", [1, 2, 3, 1000])
def test_loaded_by_pieces_it_is_the_same(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(replay, "RECORDS_AT_ONCE", at_once)
    image = rich().cluster.image
    records = list(write_records(image))
    loading = load_by_pieces(records, image.end_offset)
    for _ in range(0, len(records), at_once):
        next(loading)
    with pytest.raises(StopIteration) as end:
        next(loading)
    assert end.value.value == image


def test_the_digest_is_of_the_state_and_not_of_the_way_to_it() -> None:
    image = rich().cluster.image
    loaded = load(write_records(image), image.end_offset + 100)
    assert digest(loaded) == digest(image)
    assert digest(image) != digest(EMPTY)
    assert list(write_records(EMPTY)) == []


def test_an_image_may_be_written_while_the_cluster_goes_on() -> None:
    world = rich()
    image, half = world.cluster.image, []
    writing = write_records(image)
    half = [next(writing) for _ in range(5)]
    world.delete("a")
    assert load([*half, *writing], image.end_offset) == image
