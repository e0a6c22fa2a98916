"""A cluster grows while it is written to: a broker joins, partitions move to it and get one more
replica, it leads some of them, and no send fails.
"""

import pytest

from kraftlog import Admin, NewTopic, TopicPartition
from kraftlog.local import LocalCluster
from tests.integration.load import Load
from tests.waiting import wait_until

TOPIC = "grows"
BEFORE = [[1, 2], [2, 3], [3, 1], [1, 3]]
AFTER = [[4, 1, 2], [2, 3, 4], [3, 4, 1], [4, 3, 2]]
"""All have one more replica; broker 1 gives up the last partition, and 4 is to lead two."""
CONFIG = {"min.insync.replicas": 2, "auto.leader.rebalance.enable": False}


def replicas(admin: Admin) -> list[list[int]]:
    return [list(each.replicas) for each in admin.describe_topics(TOPIC)[TOPIC].partitions]


def leaders(admin: Admin) -> list[int]:
    return [each.leader for each in admin.describe_topics(TOPIC)[TOPIC].partitions]


# R12, R43, R49
@pytest.mark.slow
def test_a_fourth_broker_joins_under_load_and_takes_its_share() -> None:
    with LocalCluster(3, 3, config=CONFIG) as cluster, cluster.admin() as admin:
        admin.create_topics([NewTopic(TOPIC, assignments=BEFORE)]).raise_for_errors()
        cluster.wait_healthy("60s", in_sync=True)
        load = Load(cluster, TOPIC, len(BEFORE))
        with load.running() as writer:
            writer.wait_for_more()
            assert cluster.node_id(cluster.add_broker()) == 4
            cluster.wait_healthy("60s")
            targets = {TopicPartition(TOPIC, number): to for number, to in enumerate(AFTER)}
            admin.reassign(targets).raise_for_errors()
            wait_until(lambda: not admin.list_reassignments(targets), "all have moved")
            assert replicas(admin) == AFTER
            cluster.wait_healthy("60s", in_sync=True)
            admin.elect_leaders(targets)
            preferred = [to[0] for to in AFTER]
            wait_until(lambda: leaders(admin) == preferred, "the preferred replicas lead")
            writer.wait_for_more()
        load.check("a fourth broker has joined")
