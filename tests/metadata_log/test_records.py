from metadata_log.records import (
    Broker,
    Cause,
    CauseKind,
    FenceCause,
    Listener,
    PartitionState,
    Resource,
    ResourceType,
)
from tests.metadata_log.clusters import uuid


def broker(fence_cause: FenceCause | None, *, stops: bool = False) -> Broker:
    return Broker(
        id=1,
        incarnation_id=uuid("run", 1),
        epoch=1,
        listeners=(Listener("CLIENT", "host", 1),),
        log_dirs=(uuid("dir", 1),),
        fence_cause=fence_cause,
        in_controlled_shutdown=stops,
    )


def test_only_a_broker_that_is_neither_fenced_nor_leaving_is_active() -> None:
    assert broker(None).is_active
    assert not broker(None).is_fenced
    assert not broker(FenceCause.SESSION_TIMEOUT).is_active
    assert not broker(None, stops=True).is_active
    assert broker(FenceCause.SHUTDOWN, stops=True).is_fenced


def test_a_partition_is_reassigned_while_brokers_come_or_go() -> None:
    state = PartitionState((1, 2), (1, 2), 1)
    assert not state.is_reassigning
    assert state._replace(adding=(2,)).is_reassigning
    assert state._replace(removing=(2,)).is_reassigning


def test_causes_and_resources_are_shown_for_people() -> None:
    assert str(Cause(CauseKind.SESSION_TIMEOUT, "broker 3")) == "session timeout: broker 3"
    assert str(Cause(CauseKind.IDLE)) == "idle"
    assert str(Resource(ResourceType.TOPIC, "t")) == "topic t"
    assert str(Resource(ResourceType.BROKER, "")) == "broker (all)"
