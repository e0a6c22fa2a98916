"""What brokers ask of the controller, as messages."""

import pytest

from kraftlog.errors import (
    DuplicateBrokerRegistration,
    FencedLeaderEpoch,
    InvalidRequest,
    NotController,
    StaleEpoch,
)
from kraftlog.rpc import controller_pb2
from tests.quorum.governed import SESSION_MS, Governed, error_of, registration

Request = controller_pb2.ControllerRequest


def test_a_second_broker_with_the_same_id_is_refused_while_the_first_is_alive() -> None:
    # R1
    world = Governed()
    world.start(1)
    reply = world.register(1, incarnation=2)
    assert isinstance(error_of(reply), DuplicateBrokerRegistration)
    world.pass_time(SESSION_MS + 1)
    reply = world.register(1, incarnation=2)
    assert error_of(reply) is None


def test_the_same_incarnation_keeps_its_epoch() -> None:
    # bug 38
    world = Governed()
    world.start(1)
    epoch = world.epochs[1]
    assert world.register(1).register_broker.broker_epoch == epoch
    assert not world.is_fenced(1)


def test_an_id_is_handed_out_where_none_is_given() -> None:
    # R1
    world = Governed()
    world.start(1)
    reply = world.register(0, incarnation=9)
    assert reply.register_broker.broker_id not in (0, 1)


def test_epochs_grow_with_every_registration() -> None:
    # M6
    world = Governed()
    world.start(1)
    epochs = [world.epochs[1]]
    for incarnation in range(2, 5):
        world.pass_time(SESSION_MS + 1)
        world.register(1, incarnation=incarnation)
        epochs.append(world.epochs[1])
    assert epochs == sorted(set(epochs))


def test_a_registration_of_many_partitions_is_answered_after_the_last_step() -> None:
    world = Governed()
    world.start(1, 2)
    world.create("t", *[(1, 2)] * 1_500)
    world.pass_time(SESSION_MS + 1)
    world.beat(2)
    reply = world.register(1, incarnation=2)
    assert error_of(reply) is None
    assert reply.register_broker.broker_epoch == world.controller.committed.brokers[1].epoch
    assert not world.beat(1).heartbeat.is_fenced


@pytest.mark.parametrize("raw", [b"", b"short", b"x" * 17])
def test_an_incarnation_id_has_sixteen_bytes(raw: bytes) -> None:
    world = Governed()
    world.start()
    request = registration(1)
    request.register_broker.incarnation_id = raw
    assert isinstance(error_of(world.ask(request)), InvalidRequest)


def alter(world: Governed, broker_id: int, *, leader_epoch: int, isr: tuple[int, ...]) -> Request:
    topic = world.controller.committed.topic("t")
    assert topic is not None
    change = controller_pb2.IsrChange(
        topic_id=topic.id.raw,
        leader_epoch=leader_epoch,
        partition_epoch=topic.partitions[0].partition_epoch,
        isr=[controller_pb2.IsrMember(broker_id=each) for each in isr],
    )
    return Request(
        alter_partitions=controller_pb2.AlterPartitionsRequest(
            broker_id=broker_id, broker_epoch=world.epochs[broker_id], changes=[change]
        )
    )


def test_a_leader_shrinks_its_isr() -> None:
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    result = world.ask(alter(world, 1, leader_epoch=0, isr=(1,))).alter_partitions.results[0]
    assert error_of(result) is None
    assert list(result.isr) == [1]
    assert (result.leader_id, result.leader_epoch, result.partition_epoch) == (1, 0, 1)


def test_a_refused_change_has_its_error_and_changes_nothing() -> None:
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    world.pass_time(SESSION_MS - 1)
    world.beat(2)
    world.pass_time(2)  # broker 1 is fenced: leader epoch 1
    before = world.controller.committed
    result = world.ask(alter(world, 2, leader_epoch=0, isr=(2,))).alter_partitions.results[0]
    assert isinstance(error_of(result), FencedLeaderEpoch)
    assert world.controller.committed is before


def test_a_stale_broker_alters_nothing() -> None:
    # M6
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    request = alter(world, 1, leader_epoch=0, isr=(1,))
    world.pass_time(SESSION_MS + 1)
    world.register(1, incarnation=2)
    assert isinstance(error_of(world.ask(request)), StaleEpoch)


def test_producer_ids_come_in_blocks_and_never_twice() -> None:
    world = Governed()
    world.start(1)
    blocks = []
    for _ in range(3):
        request = controller_pb2.AllocateProducerIdsRequest(
            broker_id=1, broker_epoch=world.epochs[1]
        )
        reply = world.ask(Request(allocate_producer_ids=request)).allocate_producer_ids
        blocks.append(range(reply.first_id, reply.first_id + reply.count))
    assert len({number for block in blocks for number in block}) == sum(map(len, blocks)) == 3_000


def test_an_epoch_of_a_newer_controller_is_not_called_stale() -> None:
    world = Governed()
    world.start(1)
    request = controller_pb2.AllocateProducerIdsRequest(broker_id=1, broker_epoch=1_000)
    reply = world.ask(Request(allocate_producer_ids=request))
    assert isinstance(error_of(reply), NotController)
