from metadata_log.decide.changes import changes_of, elect_again
from metadata_log.effective import BUILT_IN, TopicRules
from metadata_log.partition_change import Target
from metadata_log.places import Place
from metadata_log.records import PartitionState
from tests.metadata_log.clusters import Cluster, uuid


def test_each_partition_by_the_rules_of_its_topic() -> None:
    cluster = Cluster([1, 2])
    cluster.create("careful", (1, 2))
    cluster.create("careless", (1, 2), configs={"unclean.leader.election.enable": "true"})
    for name in ("careful", "careless"):
        cluster.alter(name, 1)
    cluster.fence(1)
    assert cluster.state("careful").leader == -1
    assert cluster.state("careless").leader == 2


def test_what_is_gone_or_not_wanted_has_no_change() -> None:
    cluster = Cluster([1])
    cluster.create("t", (1,))
    gone = Place(uuid("gone", 1), 0)

    def nothing(_state: PartitionState, _rules: TopicRules) -> Target | None:
        return None

    image = cluster.image
    places = [gone, cluster.place("t"), Place(cluster.place("t").topic_id, 9)]
    assert list(changes_of(image, places, nothing, image.is_active, BUILT_IN)) == []
    assert list(elect_again(image, places, image.is_active, BUILT_IN)) == []
