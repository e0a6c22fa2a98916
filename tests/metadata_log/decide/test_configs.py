"""The story is transcripts/configs.txt."""

import pytest

from kraftlog.errors import InvalidRequest, PolicyViolation
from metadata_log.decide import configs
from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.effective import ALL_BROKERS
from metadata_log.records import PartitionChange, Resource, ResourceType
from tests.metadata_log.clusters import Cluster

TOPIC = Resource(ResourceType.TOPIC, "t")


def setting(resource: Resource, **values: str) -> ResourceChanges:
    changes = (ConfigChange(k.replace("_", "."), Operation.SET, v) for k, v in values.items())
    return ResourceChanges(resource, tuple(changes))


def test_one_wrong_resource_does_not_keep_the_others() -> None:
    cluster = Cluster([1])
    cluster.create("t", (1,))
    cluster.create("u", (1,))
    other = Resource(ResourceType.TOPIC, "u")
    request = AlterConfigs((setting(TOPIC, retention_ms="x"), setting(other, retention_ms="5")))
    refused, done = cluster.decided(alter_configs(cluster.image, request))
    assert refused.error is not None
    assert done.error is None
    assert dict(cluster.image.topic_config("t")) == {}
    assert dict(cluster.image.topic_config("u")) == {"retention.ms": "5"}


def test_only_looked_at() -> None:
    cluster = Cluster([1])
    cluster.create("t", (1,))
    request = AlterConfigs((setting(TOPIC, retention_ms="5"),), validate_only=True)
    decision = alter_configs(cluster.image, request)
    assert decision.records == ()
    assert decision.response[0].error is None


def test_nothing_is_named_twice() -> None:
    cluster = Cluster([1])
    cluster.create("t", (1,))
    one = setting(TOPIC, retention_ms="5")
    with pytest.raises(InvalidRequest, match="resource is named twice"):
        alter_configs(cluster.image, AlterConfigs((one, one)))
    twice = ResourceChanges(TOPIC, one.changes * 2)
    (outcome,) = alter_configs(cluster.image, AlterConfigs((twice,))).response
    assert isinstance(outcome.error, InvalidRequest)


@pytest.mark.parametrize("resource", [TOPIC, ALL_BROKERS])
def test_a_lower_minimum_ends_the_eligibility_of_others(resource: Resource) -> None:
    """Before any leader can act on it: in the same batch."""
    cluster = Cluster([1, 2, 3])
    cluster.decided(
        alter_configs(cluster.image, AlterConfigs((setting(ALL_BROKERS, min_insync_replicas="2"),)))
    )
    cluster.create("t", (1, 2, 3))
    cluster.alter("t", 1)
    assert cluster.state("t").elr == (2, 3)
    decision = alter_configs(
        cluster.image, AlterConfigs((setting(resource, min_insync_replicas="1"),))
    )
    cluster.decided(decision)
    changes = [e.record for e in decision.records if isinstance(e.record, PartitionChange)]
    assert [change.elr for change in changes] == [()]
    assert cluster.state("t").elr == ()


def test_a_change_that_would_touch_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "RECORDS_PER_REQUEST_MAX", 3)
    cluster = Cluster([1, 2])
    cluster.create("t", *[(1, 2)] * 5, configs={"min.insync.replicas": "2"})
    cluster.fence(2)
    request = AlterConfigs((setting(TOPIC, min_insync_replicas="1"),))
    with pytest.raises(PolicyViolation, match="6 records"):
        alter_configs(cluster.image, request)
