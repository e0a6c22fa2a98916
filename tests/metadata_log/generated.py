"""Records of every type, for tests that need any of them."""

from hypothesis import strategies as st

from kraftlog.types import Uuid
from metadata_log.records import (
    Broker,
    BrokerChange,
    Cause,
    CausedRecord,
    CauseKind,
    ConfigRecord,
    FeatureLevel,
    FeatureRange,
    FenceCause,
    Listener,
    NoOp,
    PartitionChange,
    PartitionRecord,
    PartitionState,
    ProducerIds,
    Record,
    Recovery,
    RegisterBroker,
    RemoveTopic,
    RequestDone,
    Resource,
    ResourceType,
    TopicRecord,
    UnregisterBroker,
)

uuids = st.binary(min_size=16, max_size=16).map(Uuid)
int32s = st.integers(0, 2**31 - 1)
int64s = st.integers(0, 2**63 - 1)
broker_ids = st.integers(1, 2**31 - 1)
broker_lists = st.lists(broker_ids, max_size=4).map(tuple)
texts = st.text(st.characters(codec="utf-8"), max_size=10)

listeners = st.builds(Listener, texts, texts, st.integers(0, 65_535))
feature_ranges = st.builds(FeatureRange, texts, int32s, int32s)
brokers = st.builds(
    Broker,
    id=broker_ids,
    incarnation_id=uuids,
    epoch=int64s,
    listeners=st.lists(listeners, max_size=2).map(tuple),
    log_dirs=st.lists(uuids, max_size=2).map(tuple),
    features=st.lists(feature_ranges, max_size=2).map(tuple),
    rack=st.none() | texts,
    fence_cause=st.none() | st.sampled_from(FenceCause),
    in_controlled_shutdown=st.booleans(),
    fenced_at=st.just(-1) | int64s,
)
states = st.builds(
    PartitionState,
    replicas=broker_lists,
    isr=broker_lists,
    leader=st.just(-1) | broker_ids,
    leader_epoch=int32s,
    partition_epoch=int32s,
    elr=broker_lists,
    last_known_elr=broker_lists,
    adding=broker_lists,
    removing=broker_lists,
    recovery=st.sampled_from(Recovery),
)
resources = st.builds(Resource, st.sampled_from(ResourceType), texts)
partition_changes = st.builds(
    PartitionChange,
    topic_id=uuids,
    partition=int32s,
    leader=st.none() | st.just(-1) | broker_ids,
    isr=st.none() | broker_lists,
    replicas=st.none() | broker_lists,
    adding=st.none() | broker_lists,
    removing=st.none() | broker_lists,
    elr=st.none() | broker_lists,
    last_known_elr=st.none() | broker_lists,
    recovery=st.none() | st.sampled_from(Recovery),
)

records: st.SearchStrategy[Record] = st.one_of(
    st.builds(RegisterBroker, brokers),
    st.builds(
        BrokerChange,
        broker_id=broker_ids,
        broker_epoch=int64s,
        fenced=st.none() | st.booleans(),
        fence_cause=st.none() | st.sampled_from(FenceCause),
        in_controlled_shutdown=st.none() | st.booleans(),
    ),
    st.builds(UnregisterBroker, broker_ids, int64s),
    st.builds(TopicRecord, texts, uuids),
    st.builds(PartitionRecord, uuids, int32s, states),
    partition_changes,
    st.builds(RemoveTopic, uuids),
    st.builds(ConfigRecord, resources, texts, st.none() | texts),
    st.builds(FeatureLevel, texts, int32s),
    st.builds(ProducerIds, broker_ids, int64s, int64s),
    st.builds(RequestDone, st.binary(max_size=16), int64s, st.binary(max_size=20)),
    st.just(NoOp()),
)
caused_records = st.builds(
    CausedRecord, records, st.builds(Cause, st.sampled_from(CauseKind), texts)
)
