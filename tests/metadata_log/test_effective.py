from kraftlog import config_keys as keys
from kraftlog.config import load
from kraftlog.config_keys import Scope
from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.effective import ALL_BROKERS, min_isr, rules_of, topic_value
from metadata_log.election import Election
from tests.metadata_log.clusters import STATIC, Cluster

UNCLEAN = keys.UNCLEAN_LEADER_ELECTION_ENABLE


def set_for_all(cluster: Cluster, name: str, value: str) -> None:
    change = ResourceChanges(ALL_BROKERS, (ConfigChange(name, Operation.SET, value),))
    cluster.decided(alter_configs(cluster.image, AlterConfigs((change,))))


def test_topic_then_all_brokers_then_the_process_then_the_default() -> None:
    cluster = Cluster([1])
    cluster.create("own", (1,), configs={"retention.ms": "1"})
    cluster.create("none", (1,))
    process = load(Scope.BROKER, flags={"log.retention.ms": "3"})
    key = keys.RETENTION_MS
    assert topic_value(cluster.image, "none", key) == key.default
    assert topic_value(cluster.image, "none", key, process) == 3
    set_for_all(cluster, "log.retention.ms", "2")
    assert topic_value(cluster.image, "none", key, process) == 2
    assert topic_value(cluster.image, "own", key, process) == 1


def test_the_minimum_in_sync_is_never_more_than_there_are_replicas() -> None:
    cluster = Cluster([1])
    cluster.create("t", (1,), configs={"min.insync.replicas": "3"})
    assert [min_isr(cluster.image, "t", replicas) for replicas in (1, 2, 3, 4)] == [1, 2, 3, 3]


def test_a_process_cannot_have_a_minimum_of_its_own() -> None:  # R13
    """Controller and leaders must agree, or somebody eligible may lack a record."""
    cluster = Cluster([1])
    cluster.create("t", (1,))
    process = load(Scope.CONTROLLER, flags={"min.insync.replicas": "2"})
    assert rules_of(cluster.image, process)("t").min_insync_replicas == 1
    set_for_all(cluster, "min.insync.replicas", "2")
    assert rules_of(cluster.image, STATIC)("t").min_insync_replicas == 2


def test_rules_of_a_topic() -> None:
    cluster = Cluster([1])
    cluster.create("t", (1,), configs={"flush.before.ack": "true"})
    unclean = load(Scope.CONTROLLER, flags={"unclean.leader.election.enable": "true"})
    careful, careless = rules_of(cluster.image, STATIC)("t"), rules_of(cluster.image, unclean)("t")
    assert careful.election is Election.ONLINE
    assert careless.election is Election.UNCLEAN
    assert careful.flush_before_ack
    rules = rules_of(cluster.image, STATIC)
    assert rules("t") is rules("t")
