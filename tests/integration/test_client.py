"""The public clients against real brokers and controllers."""

import asyncio
import time
from collections.abc import Iterator
from itertools import count

import pytest

from kraftlog import (
    GREEN,
    YELLOW,
    Admin,
    ConfigResource,
    Consumer,
    ConsumerRecord,
    NewTopic,
    Producer,
    Record,
    TopicPartition,
)
from kraftlog.aio import AsyncAdmin, AsyncConsumer, AsyncProducer
from kraftlog.errors import InvalidTimestamp, OffsetOutOfRange, RecordTooLarge, TopicExists
from kraftlog.local import LocalCluster
from tests.kraftlog.waiting import until

pytestmark = pytest.mark.slow

_numbers = count(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3, 3) as running:
        yield running


@pytest.fixture
def admin(cluster: LocalCluster) -> Iterator[Admin]:
    with Admin(cluster.bootstrap) as made:
        yield made


@pytest.fixture
def topic(admin: Admin) -> str:
    name = f"client-{next(_numbers)}"
    admin.create_topics(NewTopic(name, 3, 3)).raise_for_errors()
    return name


def read(consumer: Consumer[bytes, bytes], records: int) -> list[ConsumerRecord[bytes, bytes]]:
    found: list[ConsumerRecord[bytes, bytes]] = []
    until(lambda: len(found.__iadd__(consumer.poll("200ms"))) >= records, f"{records} records")
    return found


# R31, R37: what is sent is read, whichever way it is compressed
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_there_and_back(cluster: LocalCluster, topic: str, compression: str) -> None:
    sent = [
        Record(b"value %d" % number, b"key %d" % number, (("h", b"%d" % number),))
        for number in range(1_000)
    ]
    with Producer[bytes, bytes](
        cluster.bootstrap,
        compression=compression,  # type: ignore[arg-type]
    ) as producer:
        places = [future.result("30s") for future in producer.send_many(topic, sent)]
    with Consumer[bytes, bytes](
        topic, bootstrap_servers=cluster.bootstrap, offset_reset="earliest"
    ) as consumer:
        found = {(r.partition, r.offset): r for r in read(consumer, 1_000)}
        assert consumer.lag() == 0
    assert len(found) == 1_000
    for record, place in zip(sent, places, strict=True):
        arrived = found[place.partition, place.offset]
        assert (arrived.key, arrived.value, arrived.headers) == (
            record.key,
            record.value,
            record.headers,
        )


# R18, R32: nobody answers what is sent with acks=0, and nobody waits for an answer
def test_fire_and_forget(cluster: LocalCluster, admin: Admin, topic: str) -> None:
    with Producer[bytes, bytes](cluster.bootstrap, acks=0, linger=0, max_in_flight=1) as producer:
        for number in range(200):
            producer.send(topic, b"%d" % number, partition=0)
            assert producer.flush("10s") == (0, 0)
    place = TopicPartition(topic, 0)
    until(lambda: admin.list_offsets({place: "end"})[place].offset == 200, "followers have them")


# R34: leaders die, and nothing acknowledged is lost, doubled or reordered
def test_a_producer_and_a_consumer_survive_their_leaders(cluster: LocalCluster, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with (
        Producer[bytes, bytes](cluster.bootstrap, linger="1ms") as producer,
        Consumer[bytes, bytes](
            topic, bootstrap_servers=cluster.bootstrap, offset_reset="earliest"
        ) as consumer,
    ):
        sent = 0
        found: list[ConsumerRecord[bytes, bytes]] = []

        def send_some() -> None:
            nonlocal sent
            for _ in range(150):
                producer.send(topic, b"%d" % sent, partition=0)
                sent += 1
                found.extend(consumer.poll("1ms"))

        for _ in range(2):
            leader = cluster.name_of(producer.partitions_for(topic)[0].leader)
            send_some()
            cluster.kill(leader)
            send_some()
            assert producer.flush("60s") == (0, 0)
            cluster.start_node(leader)
            cluster.wait_healthy("60s", in_sync=True)
        found += read(consumer, sent - len(found)) if len(found) < sent else []
        assert consumer.position(place) == sent
    assert [record.value for record in found] == [b"%d" % number for number in range(sent)]


def test_topics_and_their_configs(admin: Admin, topic: str) -> None:
    assert isinstance(admin.create_topics(topic).errors[topic], TopicExists)
    admin.create_partitions({topic: 5}).raise_for_errors()
    resource = ConfigResource.topic(topic)
    admin.alter_configs({resource: {"max.message.bytes": "2000"}}).raise_for_errors()
    assert admin.describe_configs(resource)[resource]["max.message.bytes"].value == "2000"
    described = admin.describe_topics(topic)[topic]
    assert [len(p.replicas) for p in described.partitions] == [3] * 5
    assert topic in admin.list_topics()
    admin.delete_topics(topic).raise_for_errors()
    assert topic not in admin.list_topics()


def test_a_topic_config_holds_at_once(cluster: LocalCluster, admin: Admin, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    admin.alter_configs({resource: {"max.message.bytes": "2000"}}).raise_for_errors()
    with Producer[bytes, bytes](cluster.bootstrap, linger="100ms") as producer:
        until(
            lambda: isinstance(
                producer.send(topic, b"x" * 3_000, partition=0).exception("30s"), RecordTooLarge
            ),
            "the leader applies it",
        )
        futures = producer.send_many(topic, [Record(b"x" * 100, partition=1)] * 100)
        assert [future.result("30s").offset for future in futures] == list(range(100))


def test_how_wrong_a_producers_clock_may_be(
    cluster: LocalCluster, admin: Admin, topic: str
) -> None:
    resource = ConfigResource.topic(topic)
    now_ms = time.time_ns() // 1_000_000
    name = "message.timestamp.before.max.ms"
    with Producer[bytes, bytes](cluster.bootstrap, linger=0) as producer:

        def outcome(shift_ms: int) -> object:
            sent = producer.send(topic, b"x", partition=0, timestamp=now_ms + shift_ms)
            return sent.exception("30s")

        assert isinstance(outcome(2 * 3_600_000), InvalidTimestamp)  # beyond an hour, by default
        assert outcome(-86_400_000) is None
        admin.alter_configs({resource: {name: "3600000"}}).raise_for_errors()
        until(lambda: isinstance(outcome(-86_400_000), InvalidTimestamp), "the leader applies it")
        assert outcome(0) is None
    assert admin.describe_configs(resource)[resource][name].source == "topic"


def test_offsets_and_deleted_records(cluster: LocalCluster, admin: Admin, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with Producer[bytes, bytes](cluster.bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number, partition=0, timestamp=1_000 + number)
    assert admin.list_offsets({place: "end"})[place].offset == 20
    assert admin.list_offsets({place: "@1007"})[place].offset == 7
    assert admin.list_offsets({place: "max_timestamp"})[place].timestamp == 1_019
    assert admin.delete_records({place: 5})[place] == 5
    assert admin.list_offsets({place: "start"})[place].offset == 5
    with Consumer[bytes, bytes](
        bootstrap_servers=cluster.bootstrap, offset_reset="error"
    ) as consumer:
        consumer.assign({place: 2})
        with pytest.raises(OffsetOutOfRange):
            consumer.poll("30s")
        consumer.seek(place, "-3")
        assert [record.offset for record in read(consumer, 3)] == [17, 18, 19]


# R42, R43
def test_elections_and_moves(cluster: LocalCluster, admin: Admin, topic: str) -> None:
    place = TopicPartition(topic, 0)
    before = admin.describe_topics(topic)[topic].partitions[0]
    target = [*before.replicas[1:], before.replicas[0]]
    admin.reassign({place: target[:2]}).raise_for_errors()
    until(
        lambda: admin.describe_topics(topic)[topic].partitions[0].replicas == tuple(target[:2]),
        "the move is done",
    )
    until(lambda: not admin.list_reassignments([place]), "and nothing goes on")
    until(
        lambda: (
            not {*admin.elect_leaders([place]).errors.values()}
            or admin.describe_topics(topic)[topic].partitions[0].leader == target[0]
        ),
        "the preferred replica leads",
    )
    assert admin.describe_topics(topic)[topic].partitions[0].leader == target[0]


def test_the_cluster_and_its_quorum(cluster: LocalCluster, admin: Admin) -> None:
    described = admin.describe_cluster()
    assert [broker.broker_id for broker in described.brokers] == [1, 2, 3]
    quorum = admin.describe_quorum()
    assert quorum.role == "leader"
    assert quorum.node.node_id == described.controller_id
    assert len(quorum.voters) == 3
    views = [admin.describe_quorum(address) for address in admin.controllers()]
    assert {view.leader.node_id for view in views if view.leader} == {quorum.node.node_id}
    with Admin(bootstrap_controllers=admin.controllers()) as direct:
        assert direct.describe_cluster().cluster_id == described.cluster_id


# R2: that a broker fell silent is told by whoever is asked
def test_health_and_what_changes(cluster: LocalCluster, admin: Admin, topic: str) -> None:
    assert admin.wait_until(GREEN, "60s").grade is GREEN
    leader = admin.describe_topics(topic)[topic].partitions[0].leader
    events = admin.watch(every="50ms")
    cluster.kill(cluster.name_of(leader))
    seen: set[tuple[str, int | None]] = set()
    while not seen >= {("broker_fenced", leader), ("leader", None), ("isr", None)}:
        event = next(events)
        seen.add((event.kind, event.broker))
    health = admin.health()
    assert health.grade is YELLOW, health
    assert f"broker {leader} is fenced" in str(health)
    cluster.start_node(cluster.name_of(leader))
    assert admin.wait_until(GREEN, "60s", stable="200ms").problems == ()


def test_an_admin_survives_the_active_controller(cluster: LocalCluster, admin: Admin) -> None:
    active = cluster.controller()
    admin.list_topics()
    cluster.kill(active)
    name = f"client-{next(_numbers)}"
    admin.create_topics(NewTopic(name, 1, 1)).raise_for_errors()
    cluster.start_node(active)
    cluster.wait_healthy("60s")


def test_the_same_on_a_loop(cluster: LocalCluster, topic: str) -> None:
    async def work() -> None:
        async with (
            AsyncAdmin(cluster.bootstrap) as admin,
            AsyncProducer[bytes, bytes](cluster.bootstrap) as producer,
            AsyncConsumer[bytes, bytes](
                topic, bootstrap_servers=cluster.bootstrap, offset_reset="earliest"
            ) as consumer,
        ):
            assert topic in await admin.list_topics()
            sent = await producer.send_many(topic, [b"%d" % number for number in range(100)])
            for future in sent:
                await future
            seen = 0
            async for _record in consumer:
                seen += 1
                if seen == 100:
                    break

    asyncio.run(asyncio.wait_for(work(), 60))
