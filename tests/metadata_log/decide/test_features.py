from dataclasses import replace

import pytest

from kraftlog.errors import InvalidRequest, InvalidUpdateVersion
from metadata_log.decide.features import (
    SUPPORTED,
    FeatureUpdate,
    UpdateFeatures,
    update_features,
)
from metadata_log.records import FeatureRange
from tests.metadata_log.clusters import Cluster

MORE = {
    "metadata.version": FeatureRange("metadata.version", 1, 3),
    "group.version": FeatureRange("group.version", 0, 2),
}


def cluster_that_can() -> Cluster:
    cluster = Cluster()
    cluster.registered(replace(cluster.registration(1), features=tuple(MORE.values())))
    return cluster


def update(cluster: Cluster, *updates: FeatureUpdate) -> list[Exception | None]:
    decision = update_features(cluster.image, UpdateFeatures(updates), supported=MORE)
    return [outcome.error for outcome in cluster.decided(decision)]


def test_up_where_all_can() -> None:
    cluster = cluster_that_can()
    assert update(
        cluster, FeatureUpdate("metadata.version", 3), FeatureUpdate("group.version", 1)
    ) == [None, None]
    assert dict(cluster.image.features) == {"metadata.version": 3, "group.version": 1}
    assert update(cluster, FeatureUpdate("group.version", 1)) == [None]
    assert update(cluster, FeatureUpdate("group.version", 0, allow_downgrade=True)) == [None]
    assert dict(cluster.image.features) == {"metadata.version": 3}


def test_all_or_none() -> None:
    cluster = cluster_that_can()
    errors = update(cluster, FeatureUpdate("group.version", 1), FeatureUpdate("group.x", 1))
    assert errors[0] is None
    assert isinstance(errors[1], InvalidUpdateVersion)
    assert dict(cluster.image.features) == {"metadata.version": 1}


def test_down_has_to_be_said_and_for_metadata_twice() -> None:
    cluster = cluster_that_can()
    update(cluster, FeatureUpdate("metadata.version", 3), FeatureUpdate("group.version", 2))
    for refused in (
        FeatureUpdate("group.version", 1),
        FeatureUpdate("metadata.version", 2),
        FeatureUpdate("metadata.version", 2, allow_downgrade=True),
        FeatureUpdate("metadata.version", 0, unsafe=True),
    ):
        (error,) = update(cluster, refused)
        assert isinstance(error, InvalidUpdateVersion), refused
    assert update(cluster, FeatureUpdate("metadata.version", 2, unsafe=True)) == [None]
    assert cluster.image.features["metadata.version"] == 2


def test_a_broker_that_cannot_holds_all_back() -> None:
    cluster = cluster_that_can()
    cluster.register(2)
    (error,) = update(cluster, FeatureUpdate("metadata.version", 2))
    assert str(error).startswith("broker 2: metadata.version: level 2 is asked for")


def test_only_looked_at_and_named_twice() -> None:
    cluster = cluster_that_can()
    one = FeatureUpdate("group.version", 1)
    looked = update_features(
        cluster.image, UpdateFeatures((one,), validate_only=True), supported=MORE
    )
    assert looked.records == ()
    with pytest.raises(InvalidRequest, match="named twice"):
        update_features(cluster.image, UpdateFeatures((one, one)), supported=MORE)


def test_what_we_write_is_what_we_support() -> None:
    cluster = Cluster()
    level = cluster.image.features["metadata.version"]
    able = SUPPORTED["metadata.version"]
    assert able.min_level <= level <= able.max_level
