"""What a broker asks of the controller, as it arrives there, and what it makes of the answers."""

from brokers import controller_wire
from brokers.cluster import PartitionId
from brokers.controller_wire import Heartbeat, HeartbeatAnswer, Registered, Registration
from brokers.requests import IsrChange, IsrMember, IsrResult
from kraftlog.errors import FencedLeaderEpoch, TopicExists
from kraftlog.rpc import controller_pb2 as pb
from kraftlog.types import Uuid
from tests.brokers.controllers import Reply, linked, scripted
from tests.loops import run

REGISTRATION = Registration(
    broker_id=None,
    incarnation_id=Uuid(b"i" * 16),
    endpoint="[::1]:9092",
    rack="r1",
    log_dir_ids=(Uuid(b"1" * 16), Uuid(b"2" * 16)),
    previous_epoch=None,
    features={"metadata.version": (1, 3)},
)


def test_a_registration() -> None:
    answer = Reply(offset=80, register_broker=pb.RegisterBrokerReply(broker_id=4, broker_epoch=70))

    async def story() -> None:
        async with scripted(lambda _: answer) as controller, linked(controller.address) as link:
            registered = await controller_wire.register(link, REGISTRATION, timeout_ms=5_000)
            assert registered == Registered(4, 70, 80)
            asked = controller.asked[0].register_broker
            assert asked.broker_id == 0  # to be handed out
            assert (asked.endpoint.host, asked.endpoint.port) == ("::1", 9092)
            assert (asked.rack, list(asked.log_dir_ids)) == ("r1", [b"1" * 16, b"2" * 16])
            assert not asked.HasField("previous_broker_epoch")
            [feature] = asked.features
            assert (feature.name, feature.min_level, feature.max_level) == (
                "metadata.version",
                1,
                3,
            )

    run(story())


def test_a_heartbeat() -> None:
    answer = Reply(heartbeat=pb.HeartbeatReply(is_fenced=True, should_shut_down=True))
    beat = Heartbeat(
        broker_id=1, broker_epoch=70, applied_offset=90, want_fence=False, want_shut_down=True
    )

    async def story() -> None:
        async with scripted(lambda _: answer) as controller, linked(controller.address) as link:
            told = await controller_wire.send_heartbeat(link, beat, timeout_ms=5_000)
            assert told == HeartbeatAnswer(False, True, True)
            asked = controller.asked[0].heartbeat
            assert (asked.broker_id, asked.broker_epoch, asked.applied_offset) == (1, 70, 90)
            assert (asked.want_fence, asked.want_shut_down) == (False, True)

    run(story())


def test_a_block_of_producer_ids() -> None:
    block = pb.AllocateProducerIdsReply(first_id=3_000, count=1_000)
    answer = Reply(allocate_producer_ids=block)

    async def story() -> None:
        async with scripted(lambda _: answer) as controller, linked(controller.address) as link:
            ids = await controller_wire.allocate_producer_ids(link, 1, 70, timeout_ms=5_000)
            assert ids == range(3_000, 4_000)
            asked = controller.asked[0].allocate_producer_ids
            assert (asked.broker_id, asked.broker_epoch) == (1, 70)

    run(story())


def test_new_topics_have_the_defaults_of_the_controller() -> None:
    created = pb.CreateTopicsReply(
        topics=[pb.NewTopicResult(name="a"), pb.NewTopicResult(name="b")]
    )
    created.topics[1].error.code = 36
    answer = Reply(offset=55, create_topics=created)

    async def story() -> None:
        async with scripted(lambda _: answer) as controller, linked(controller.address) as link:
            told = await controller_wire.create_topics(link, ["a", "b"], timeout_ms=5_000)
            assert told.offset == 55
            assert {name: type(error) for name, error in told.errors.items()} == {"b": TopicExists}
            for topic in controller.asked[0].create_topics.topics:
                assert not topic.HasField("partitions")
                assert not topic.HasField("replication_factor")

    run(story())


def test_changes_of_isrs() -> None:
    place, other = PartitionId(b"t" * 16, 3), PartitionId(b"t" * 16, 4)
    done = pb.IsrResult(topic_id=b"t" * 16, partition=3, leader_id=1, leader_epoch=5)
    done.partition_epoch, done.recovering = 9, False
    done.isr.extend([1, 2])
    refused = pb.IsrResult(topic_id=b"t" * 16, partition=4)
    refused.error.code = 74
    answer = Reply(alter_partitions=pb.AlterPartitionsReply(results=[done, refused]))
    changes = [
        IsrChange(place, 5, 8, (IsrMember(1, 70), IsrMember(2)), recovering=True),
        IsrChange(other, 6, 2, (IsrMember(1, 70),)),
    ]

    async def story() -> None:
        async with scripted(lambda _: answer) as controller, linked(controller.address) as link:
            first, second = await controller_wire.alter_partitions(
                link, changes, broker_id=1, broker_epoch=70, timeout_ms=5_000
            )
            assert first == IsrResult(place, 1, 5, 9, (1, 2))
            assert isinstance(second.error, FencedLeaderEpoch)
            asked = controller.asked[0].alter_partitions
            assert (asked.broker_id, asked.broker_epoch) == (1, 70)
            change = asked.changes[0]
            assert (change.leader_epoch, change.partition_epoch, change.recovering) == (5, 8, True)
            assert change.isr[0].broker_epoch == 70
            assert not change.isr[1].HasField("broker_epoch")

    run(story())
