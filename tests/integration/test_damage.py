"""The way out of a damaged log that others cannot replace, as docs/BROKERS.md tells it."""

from pathlib import Path

import pytest

from kraftlog import Admin, NewTopic, TopicPartition
from kraftlog.local import LocalCluster
from tests.waiting import wait_until

TOPIC = "damaged"
PLACE = TopicPartition(TOPIC, 0)


def damage(cluster: LocalCluster, name: str) -> None:
    log = Path(cluster.data_path(name)) / f"{TOPIC}-0"
    (log / "partition.metadata").write_text("nonsense")


def isr(admin: Admin) -> set[int]:
    return set(admin.describe_topics(TOPIC)[TOPIC].partitions[0].isr)


@pytest.mark.slow
def test_the_last_copy_is_damaged_and_another_one_goes_on() -> None:
    with LocalCluster(1, 2) as cluster, cluster.admin() as admin:
        admin.create_topics([NewTopic(TOPIC, assignments=[[1, 2]])]).raise_for_errors()
        cluster.wait_topic(TOPIC)
        with cluster.producer() as producer:
            producer.send(TOPIC, b"on both").result("30s")
            cluster.stop_node("b2")
            producer.send(TOPIC, b"on one").result("30s")
        cluster.stop_node("b1")
        damage(cluster, "b1")
        cluster.start_node("b1")
        cluster.start_node("b2")
        cluster.wait_healthy("60s")
        assert cluster.leader(TOPIC) == "b1"  # nobody else has all
        assert f"{PLACE} cannot be used here" in cluster.logs("b1")
        admin.fence_broker(1)
        admin.elect_leaders([PLACE], unclean=True).raise_for_errors()
        admin.fence_broker(1, fenced=False)
        wait_until(lambda: isr(admin) == {1, 2}, "the damaged copy is made anew")
        assert list(Path(cluster.data_path("b1")).glob(f"{TOPIC}-0.*-stray"))
        with cluster.consumer(TOPIC, offset_reset="earliest") as consumer:
            assert [record.value for record in consumer.poll("30s")] == [b"on both"]
