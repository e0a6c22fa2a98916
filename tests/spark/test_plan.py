import pytest

from kraftlog.errors import ConfigError, UnknownTopicOrPartition
from kraftlog.local import LocalCluster
from kraftlog.types import TopicPartition
from spark_connector.client import Ends
from spark_connector.loss import DataLost
from spark_connector.offsets import Range
from spark_connector.options import source_options
from spark_connector.plan import Planner
from tests.spark.topics import fill
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("spark")


def plan(cluster: LocalCluster, **options: str) -> Planner:
    given = {"bootstrap.servers": cluster.bootstrap} | options
    return Planner(source_options(given, streaming=True))


@pytest.mark.kraft(partitions=2)
def test_starts(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    places = [TopicPartition(kraft_topic, 0), TopicPartition(kraft_topic, 1)]
    fill(kraft_cluster, kraft_topic, 0, 10)
    fill(kraft_cluster, kraft_topic, 1, 20)
    json = f'{{"{kraft_topic}": {{"0": 4, "1": -2}}}}'
    times = f'{{"{kraft_topic}": {{"0": 1003, "1": 1015}}}}'
    for option, value, starts in [
        ("startingOffsets", "earliest", [0, 0]),
        ("startingOffsets", "latest", [10, 20]),
        ("startingOffsets", "-3", [7, 17]),
        ("startingOffsets", "+3", [3, 3]),
        ("startingOffsets", "@1005", [5, 5]),
        ("startingOffsets", json, [4, 0]),
        ("startingTimestamp", "1002", [2, 2]),
        ("startingOffsetsByTimestamp", times, [3, 15]),
    ]:
        planner = plan(kraft_cluster, subscribe=kraft_topic, **{option: value})
        assert planner.partitions() == places
        assert list(planner.starts(places).values()) == starts, (option, value)


def test_a_time_after_every_record(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    fill(kraft_cluster, kraft_topic, 0, 10)
    place = TopicPartition(kraft_topic, 0)
    planner = plan(kraft_cluster, subscribe=kraft_topic, startingTimestamp="5000")
    with pytest.raises(ConfigError, match=r"no record at or after 5000 .*Strategy to latest"):
        planner.starts([place])
    latest = plan(
        kraft_cluster,
        subscribe=kraft_topic,
        startingTimestamp="5000",
        startingOffsetsByTimestampStrategy="latest",
    )
    assert latest.starts([place]) == {place: 10}


def test_what_there_is_not(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    fill(kraft_cluster, kraft_topic, 0, 10)
    place = TopicPartition(kraft_topic, 0)
    outside = plan(kraft_cluster, subscribe=kraft_topic, startingOffsets="11")
    with pytest.raises(ConfigError, match=r"has 11 for .*, which has 0 to 10"):
        outside.starts([place])
    assigned = plan(kraft_cluster, assign=f'{{"{kraft_topic}": [0, 7]}}')
    with pytest.raises(UnknownTopicOrPartition, match=f"no partition {kraft_topic}-7"):
        assigned.partitions()
    assert assigned.existing() == [place]


def test_offsets_before_the_first_record_are_lost(
    kraft_cluster: LocalCluster, kraft_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 10)
    place = TopicPartition(kraft_topic, 0)
    with kraft_cluster.admin() as admin:
        admin.delete_records({place: 4}).raise_for_errors()
    given = {"subscribe": kraft_topic, "startingOffsets": "2"}
    with pytest.raises(DataLost, match=r"startingOffsets has 2 for .*, which begins at 4"):
        plan(kraft_cluster, **given).starts([place])
    assert plan(kraft_cluster, **given, failOnDataLoss="false").starts([place]) == {place: 4}
    assert "startingOffsets has 2" in caplog.text


def test_what_is_read(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    place = TopicPartition(kraft_topic, 0)
    pattern = plan(kraft_cluster, subscribePattern=f"{kraft_topic}|none")
    wait_until(lambda: pattern.partitions() == [place], "the broker knows the topic")
    assert pattern.existing() == [place]
    named = plan(kraft_cluster, subscribe=kraft_topic, minPartitions="2")
    assert named.existing() == [place]
    assert named.bounds([place]) == {place: Ends(0, 0)}
    assert named.bounds([]) == {}
    assert named.sizes([Range(place, 0, 0)]) == {}
    assert len(named.split([Range(place, 0, 10)])) == 2
    assert named.ends([place]) == {place: 0}


def test_what_one_look_misses_has_not_gone_yet(
    kraft_cluster: LocalCluster, kraft_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just come up may not know the youngest topics."""
    planner = plan(kraft_cluster, subscribe=kraft_topic)
    place, gone = TopicPartition(kraft_topic, 0), TopicPartition(kraft_topic, 9)
    looks: list[dict[str, int]] = [{}, {kraft_topic: 1}]
    monkeypatch.setattr(planner.cluster, "existing", lambda _names: looks.pop(0))
    assert planner.existing([place]) == [place]
    monkeypatch.undo()
    assert planner.existing([place, gone]) == [place], "after a while it is given up"


@pytest.mark.kraft(partitions=2)
def test_ends(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    places = [TopicPartition(kraft_topic, 0), TopicPartition(kraft_topic, 1)]
    fill(kraft_cluster, kraft_topic, 0, 10)
    fill(kraft_cluster, kraft_topic, 1, 20)
    times = f'{{"{kraft_topic}": {{"0": 1003, "1": 9000}}}}'
    for option, value, ends in [
        ("endingOffsets", "latest", [10, 20]),
        ("endingOffsets", "+3", [3, 3]),
        ("endingTimestamp", "1015", [10, 15]),
        ("endingOffsetsByTimestamp", times, [3, 20]),
    ]:
        given = {"bootstrap.servers": kraft_cluster.bootstrap, "subscribe": kraft_topic}
        planner = Planner(source_options(given | {option: value}, streaming=False))
        assert list(planner.ends(places).values()) == ends, (option, value)
