"""Bug 39 of those that others had: logs were taken for strays, or were not (KAFKA-13127, 14616,
16814). A stray is renamed, never deleted, and only by a complete image.
"""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from brokers.cluster import Assignment, PartitionId
from brokers.config import broker_config
from brokers.directories import Directories, open_directories
from kraftlog.clock import ManualClock
from kraftlog.record_batch import read_batches
from kraftlog.types import TopicPartition, Uuid
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster, values_in
from tests.brokers.images import image_of, registered, topic, uuid
from tests.brokers.views import static
from tests.loops import until
from tests.storage.logs import batch

CLUSTER = str(Uuid(b"cluster id......"))

ON_DISK = ("nothing", "its log", "a log of an older topic", "a log of nobody")
IN_METADATA = ("ours", "moved away", "deleted")
REPLICAS = {"ours": [1, 2], "moved away": [2, 3]}


def directories(disk: ModelDisk) -> Directories:
    flags = static(quorum_peers="127.0.0.1:1", log_dirs="/data", cluster_id=CLUSTER, node_id="1")
    plain = LogConfig()
    return open_directories(broker_config(flags), disk, ManualClock(), lambda _: plain)


def keep_logs(disk: ModelDisk, on_disk: dict[str, str]) -> None:
    """What an earlier life of the broker has left."""
    before = directories(disk)
    for name, kind in on_disk.items():
        owner = uuid(f"old {name}" if kind == "a log of an older topic" else name)
        log = before.logs.create(TopicPartition(name, 0), owner)
        log.append(batch(name.encode()), leader_epoch=0)
    before.close(1)
    for name, kind in on_disk.items():
        if kind == "a log of nobody":
            disk.remove(f"/data/{name}-0/partition.metadata")


def values(disk: ModelDisk, directory: str) -> list[bytes | None]:
    segment = disk.read_bytes(f"{directory}/{0:020d}.log")
    return [record.value for each in read_batches(segment) for record in each.records()]


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(st.sampled_from(ON_DISK), st.sampled_from(IN_METADATA)),
    )
)
def test_kafka_13127_strays_are_renamed_and_all_else_stays(
    topics: dict[str, tuple[str, str]],
) -> None:
    disk = ModelDisk()
    on_disk = {name: kind for name, (kind, _) in topics.items() if kind != "nothing"}
    keep_logs(disk, on_disk)
    assigned = [
        topic(name, REPLICAS[state]) for name, (_, state) in topics.items() if state in REPLICAS
    ]
    again = directories(disk)
    kept = again.set_strays_aside(image_of(registered(1), *assigned), 1)
    ours = {name for name, found in topics.items() if found == ("its log", "ours")}
    assert {place.topic for place in again.logs.partitions()} == ours
    assert all(path.endswith("-stray") for path in kept)
    strays = {path.removeprefix("/data/").partition("-")[0]: path for path in kept}
    assert set(strays) == set(on_disk) - ours
    for name, path in strays.items() | {(name, f"/data/{name}-0") for name in ours}:
        assert values(disk, path) == [name.encode()]
    again.close(1)


def test_kafka_16814_a_log_that_has_lost_its_topic_id_stops_no_broker() -> None:
    disk = ModelDisk()
    keep_logs(disk, {"a": "a log of nobody", "b": "its log"})
    again = directories(disk)
    kept = again.set_strays_aside(image_of(registered(1), topic("a", [1]), topic("b", [1])), 1)
    assert [values(disk, path) for path in kept] == [[b"a"]]
    assert again.logs.create(TopicPartition("a", 0), uuid("a")).end_offset == 0
    assert again.logs.partitions() == [TopicPartition("b", 0), TopicPartition("a", 0)]
    again.close(1)


@async_test
async def test_kafka_14616_a_topic_made_anew_meanwhile_gets_a_log_of_its_own(
    tmp_path: Path,
) -> None:
    async with Cluster(tmp_path) as cluster:
        old = await cluster.create("t")
        await cluster.produce(old, b"of the old topic")
        await cluster.replicated(old)
        await cluster.kill(3)
        cluster.change(lambda controller: controller.remove(old))
        new = PartitionId(b"another topic id", 0)
        assignment = Assignment(new, "t", 1, 0, 0, (1, 2, 3), (1, 2))
        cluster.change(lambda controller: controller.put(assignment))
        await cluster.settled()
        await cluster.produce(new, b"of the new one")
        await cluster.restart(3)
        await cluster.in_sync(new, 1, 2, 3)
        await until(lambda: values_in(cluster.brokers[3], new) == [b"of the new one"])
        kept = [each.name for each in (tmp_path / "b3").iterdir() if each.name.endswith("-stray")]
        assert [name.partition(".")[0] for name in kept] == ["t-0"]
