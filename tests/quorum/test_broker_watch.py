"""Brokers as the active controller sees them: heard, fenced, let back in, shut down."""

from kraftlog.errors import NotController, StaleEpoch
from kraftlog.rpc import controller_pb2
from metadata_log.records import FenceCause
from tests.quorum.governed import SESSION_MS, Governed, error_of, heartbeat, registration

LAG_MS = 3 * SESSION_MS


def test_a_broker_is_fenced_until_it_has_applied_its_own_registration() -> None:
    # R5, R6
    world = Governed()
    world.start()
    world.register(1)
    world.applied[1] = world.epochs[1]  # all before its registration, not the record itself
    reply = world.beat(1).heartbeat
    assert (reply.is_caught_up, reply.is_fenced) == (False, True)
    del world.applied[1]
    reply = world.beat(1).heartbeat
    assert (reply.is_caught_up, reply.is_fenced) == (True, False)
    assert not world.is_fenced(1)


def test_a_heartbeat_without_effect_is_answered_at_once_and_writes_nothing() -> None:
    world = Governed()
    world.start(1)
    before = len(world.ledger.batches)
    replies = world.send(heartbeat(1, world.epochs[1], applied=99))
    assert len(replies) == 1  # before anything else had its turn
    assert len(world.ledger.batches) == before


def test_heartbeats_do_not_wait_for_the_queue() -> None:
    # bugs 28
    world = Governed()
    world.start(1)
    for number in range(1_000):
        world.send(registration(100 + number))
    replies = world.send(heartbeat(1, world.epochs[1], applied=99))
    assert error_of(replies[0]) is None


def test_unfenced_is_what_is_committed_and_not_what_is_likely() -> None:
    world = Governed()
    world.start()
    world.register(1)
    world.send(heartbeat(1, world.epochs[1], applied=99))
    world.ledger.run()  # decided and appended, not committed
    again = world.send(heartbeat(1, world.epochs[1], applied=99))
    assert again[0].heartbeat.is_fenced
    world.ledger.settle()
    assert not world.beat(1).heartbeat.is_fenced


def test_a_silent_broker_is_fenced_after_a_whole_session() -> None:
    # R2, R6, R10
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    world.ledger.now += SESSION_MS - 1
    world.beat(2)
    world.pass_time(1)
    assert not world.is_fenced(1)
    world.pass_time(1)
    assert world.is_fenced(1)
    assert not world.is_fenced(2)
    broker = world.controller.committed.brokers[1]
    assert broker.fence_cause is FenceCause.SESSION_TIMEOUT
    topic = world.controller.committed.topic("t")
    assert topic is not None
    assert topic.partitions[0].replicas == (1, 2)  # its id stays in the replica list
    assert (topic.partitions[0].isr, topic.partitions[0].leader) == ((2,), 2)


def test_a_failover_is_told_with_its_length() -> None:
    world = Governed()
    told: list[float] = []
    world.watch.observe_failover = told.append
    world.start(1, 2, 3)
    world.create("t", (1, 2))
    world.ledger.now += SESSION_MS
    world.beat(2)
    world.beat(3)
    world.pass_time(20)
    assert world.is_fenced(1)
    assert told == [(SESSION_MS + 20) / 1000]
    world.ledger.now += SESSION_MS
    world.beat(2)
    world.pass_time(1)
    assert world.is_fenced(3)
    assert len(told) == 1  # it led nothing
    assert world.watch.sessions_timed_out == 2


def test_a_broker_that_is_heard_again_in_time_has_not_failed_over() -> None:
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    world.ledger.now += SESSION_MS + 1
    world.watch.tick()  # it is about to be fenced
    for broker_id in (1, 2):
        world.send(heartbeat(broker_id, world.epochs[broker_id], applied=99))
    world.ledger.settle()
    assert not world.is_fenced(1)
    assert world.watch.sessions_timed_out == 0


def test_all_silent_brokers_are_fenced_one_after_the_other() -> None:
    # bug 26
    world = Governed()
    world.start(1, 2, 3)
    world.create("t", (1, 2, 3))
    world.pass_time(SESSION_MS + 1)
    assert all(world.is_fenced(broker_id) for broker_id in (1, 2, 3))
    topic = world.controller.committed.topic("t")
    assert topic is not None
    state = topic.partitions[0]
    assert (state.leader, state.isr) == (-1, ())
    assert set(state.elr) | set(state.last_known_elr)  # M9: somebody is known to hold the records


def test_a_heartbeat_that_comes_before_the_decision_saves_the_broker() -> None:
    world = Governed()
    world.start(1)
    world.ledger.now += SESSION_MS + 1
    world.watch.tick()
    world.send(heartbeat(1, world.epochs[1], applied=99))
    world.ledger.settle()
    assert not world.is_fenced(1)


def test_a_new_controller_gives_every_broker_a_full_session() -> None:
    # bug 27
    world = Governed()
    world.start(1, 2)
    world.ledger.now += SESSION_MS - 1
    world.ledger.lose()
    world.ledger.lead(2)
    world.pass_time(SESSION_MS)
    assert not world.is_fenced(1)
    world.beat(1)
    world.pass_time(1)
    assert world.is_fenced(2)
    assert not world.is_fenced(1)


def test_a_broker_that_lags_is_fenced_though_it_is_heard() -> None:
    # R6
    world = Governed()
    world.start(1, 2)
    world.beat(1)
    world.applied[1] = world.controller.committed.end_offset
    world.create("t", (1, 2))  # more is committed, and broker 1 does not apply it
    for _ in range(0, LAG_MS + SESSION_MS, 500):
        world.beat(1)
        world.beat(2)
        world.pass_time(500)
    assert world.controller.committed.brokers[1].fence_cause is FenceCause.METADATA_LAG
    assert not world.is_fenced(2)
    assert world.beat(1).heartbeat.is_fenced
    del world.applied[1]
    assert not world.beat(1).heartbeat.is_fenced


def test_a_stale_epoch_is_refused_and_keeps_no_session_alive() -> None:
    # M6
    world = Governed()
    world.start(1)
    old = world.epochs[1]
    world.pass_time(SESSION_MS + 1)
    world.register(1, incarnation=2)
    reply = world.ask(heartbeat(1, old, applied=99))
    assert isinstance(error_of(reply), StaleEpoch)
    assert world.epochs[1] > old


def test_an_epoch_that_our_log_has_not_reached_means_that_we_are_the_old_one() -> None:
    # bug 33
    world = Governed()
    world.start(1)
    reply = world.ask(heartbeat(1, world.ledger.end_offset + 5, applied=99))
    assert isinstance(error_of(reply), NotController)


# -- shutting down  # R7


def test_a_controlled_shutdown_moves_the_leaders_first() -> None:
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2), (1, 2))
    world.beat(2)
    world.applied[2] = world.controller.committed.end_offset
    reply = world.beat(1, want_shut_down=True).heartbeat
    assert not reply.should_shut_down
    topic = world.controller.committed.topic("t")
    assert topic is not None
    assert [state.leader for state in topic.partitions] == [2, 2]
    # The other one has not heard yet that it leads.
    world.beat(2)
    assert not world.beat(1, want_shut_down=True).heartbeat.should_shut_down
    del world.applied[2]
    world.beat(2)
    assert world.beat(1, want_shut_down=True).heartbeat.should_shut_down
    assert world.controller.committed.brokers[1].fence_cause is FenceCause.SHUTDOWN


def test_a_shutdown_ends_though_the_log_goes_on() -> None:
    # bug 29: the offset to be reached is set once
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    world.beat(1, want_shut_down=True)
    world.beat(2)
    world.applied[2] = world.controller.committed.end_offset
    world.beat(2)
    world.create("u", (2,))
    assert world.beat(1, want_shut_down=True).heartbeat.should_shut_down


def test_a_shutdown_that_began_under_another_controller_goes_on() -> None:
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    world.beat(1, want_shut_down=True)
    world.ledger.lose()
    world.ledger.lead(2)
    world.beat(2)
    world.beat(1, want_shut_down=True)
    assert world.beat(1, want_shut_down=True).heartbeat.should_shut_down


# -- the rest


def test_leaders_go_back_to_where_they_are_preferred() -> None:
    # R12
    world = Governed()
    world.start(1, 2)
    world.create("t", (1, 2))
    world.pass_time(SESSION_MS - 1)
    world.beat(2)
    world.pass_time(2)
    assert world.is_fenced(1)
    world.beat(1)
    _join_isr(world)
    world.watch._rebalance_at_ms = world.ledger.now
    world.pass_time(1)
    topic = world.controller.committed.topic("t")
    assert topic is not None
    assert topic.partitions[0].leader == 1


def _join_isr(world: Governed) -> None:
    """Broker 2, the leader, tells that broker 1 is in sync again."""
    topic = world.controller.committed.topic("t")
    assert topic is not None
    state = topic.partitions[0]
    change = controller_pb2.IsrChange(
        topic_id=topic.id.raw,
        partition=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        isr=[
            controller_pb2.IsrMember(broker_id=each, broker_epoch=world.epochs[each])
            for each in (1, 2)
        ],
    )
    alter = controller_pb2.AlterPartitionsRequest(
        broker_id=2, broker_epoch=world.epochs[2], changes=[change]
    )
    reply = world.ask(controller_pb2.ControllerRequest(alter_partitions=alter))
    assert error_of(reply) is None
    assert error_of(reply.alter_partitions.results[0]) is None


def test_the_first_controller_writes_what_a_cluster_begins_with() -> None:
    world = Governed()
    world.start()
    assert "metadata.version" in world.controller.committed.features
    before = len(world.ledger.batches)
    world.ledger.lose()
    world.ledger.lead(2)
    world.ledger.settle()
    assert len(world.ledger.batches) == before + 1  # the new epoch's own record, nothing else


def test_a_standby_has_nothing_to_hurry_for() -> None:
    world = Governed()  # not started: somebody else is active
    assert world.watch.next_tick_ms() > world.ledger.now + SESSION_MS


def test_the_next_tick_is_due_when_a_session_can_end() -> None:
    world = Governed()
    world.start(1)
    assert world.watch.next_tick_ms() == world.ledger.now + SESSION_MS + 1
