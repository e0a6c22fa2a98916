"""Small things between messages and values."""

import pytest

from kraftlog.errors import InvalidRequest, NotController
from kraftlog.rpc import controller_pb2
from metadata_log.records import PartitionState, Recovery, Resource, ResourceType
from quorum.controller_wire import (
    decode_resource,
    decode_uuid,
    encode_error,
    encode_partition,
    encode_resource,
    named_results,
)


@pytest.mark.parametrize("kind", list(ResourceType))
def test_resources_go_there_and_back(kind: ResourceType) -> None:
    resource = Resource(kind, "x")
    assert decode_resource(encode_resource(resource)) == resource


@pytest.mark.parametrize("number", [0, 3, 99])
def test_other_resources_are_refused(number: int) -> None:
    message = controller_pb2.ConfigResource()
    message.type = number  # type: ignore[assignment] # as a number from the wire
    with pytest.raises(InvalidRequest, match=f"resource type {number}"):
        decode_resource(message)


def test_an_id_has_sixteen_bytes() -> None:
    assert decode_uuid(b"x" * 16, "it").raw == b"x" * 16
    with pytest.raises(InvalidRequest, match="it has 3 bytes"):
        decode_uuid(b"abc", "it")


def test_an_error_has_number_words_and_hint() -> None:
    error = encode_error(NotController("not here", hint="there"))
    assert (error.code, error.message, error.hint) == (41, "not here", "there")


def test_a_partition_keeps_all_it_has() -> None:
    state = PartitionState(
        (1, 2, 3),
        (2,),
        2,
        leader_epoch=4,
        partition_epoch=9,
        elr=(1,),
        last_known_elr=(3,),
        adding=(3,),
        removing=(1,),
        recovery=Recovery.RECOVERING,
    )
    message = encode_partition(7, state)
    assert (message.partition, message.leader_id, message.leader_epoch) == (7, 2, 4)
    assert (list(message.elr), list(message.last_known_elr)) == ([1], [3])
    assert (list(message.adding), list(message.removing)) == ([3], [1])
    assert message.recovering


def test_results_keep_their_order() -> None:
    results = named_results(["a", "b"], [None, NotController("no")])
    assert [(each.name, each.error.code) for each in results] == [("a", 0), ("b", 41)]
