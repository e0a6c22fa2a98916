import asyncio
import logging

import pytest

from brokers.controller_wire import Heartbeat, HeartbeatAnswer, Registered, Registration
from brokers.lifecycle import BrokerState, Lifecycle, LifecycleTiming
from kraftlog.clock import ManualClock
from kraftlog.errors import (
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    KraftError,
    NetworkError,
    NotController,
    StaleEpoch,
)
from kraftlog.types import Uuid
from tests.loops import run, until

TIMING = LifecycleTiming(heartbeat_ms=30, session_ms=1_000, registration_ms=5_000)


class Controller:
    """Answers as it is told to."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registrations: list[Registration] = []
        self.refusals: list[KraftError] = []
        self.beats: list[Heartbeat] = []
        self.answer: HeartbeatAnswer | KraftError = HeartbeatAnswer(True, False, False)
        self.latency_ms = 0
        self.applied = 0
        self.fencing: list[bool] = []

    async def register(self, registration: Registration, timeout_ms: int) -> Registered:
        assert timeout_ms > 0
        self.registrations.append(registration)
        self.clock.advance(100)
        if self.refusals:
            raise self.refusals.pop(0)
        number = len(self.registrations)
        return Registered(registration.broker_id or 7, 10 * number, 10 * number + 1)

    async def heartbeat(self, beat: Heartbeat, timeout_ms: int) -> HeartbeatAnswer:
        assert timeout_ms == 250  # well under the session
        self.beats.append(beat)
        self.clock.advance(self.latency_ms)
        if isinstance(self.answer, KraftError):
            raise self.answer
        return self.answer

    def lifecycle(self, broker_id: int | None = 1) -> Lifecycle:
        registration = Registration(
            broker_id=broker_id,
            incarnation_id=Uuid(b"i" * 16),
            endpoint="host:9092",
            rack=None,
            log_dir_ids=(Uuid(b"d" * 16),),
            previous_epoch=5,
            features={},
        )
        return Lifecycle(
            registration,
            TIMING,
            register=self.register,
            send_heartbeat=self.heartbeat,
            applied_offset=lambda: self.applied,
            clock=self.clock,
            on_fencing=self.fencing.append,
        )


class Running:
    """Heartbeats in the background."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> None:
        await self._tasks.__aenter__()
        self._running = self._tasks.create_task(self._lifecycle.run())

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await self._tasks.__aexit__(None, None, None)


def told_fenced(lifecycle: Lifecycle) -> bool:
    """As state."""
    return lifecycle.told_fenced


def state(lifecycle: Lifecycle) -> BrokerState:
    """As it is now: a type checker takes an attribute for what it was."""
    return lifecycle.state


# -- registration


def test_registration_goes_on_until_a_controller_agrees() -> None:
    async def story() -> None:
        controller = Controller()
        controller.refusals = [NotController("not me"), NetworkError("gone")]
        lifecycle = controller.lifecycle()
        registered = await lifecycle.register()
        assert registered == Registered(1, 30, 31)
        assert (lifecycle.broker_id, lifecycle.broker_epoch) == (1, 30)
        assert [each.previous_epoch for each in controller.registrations] == [5, 5, 5]
        assert state(lifecycle) is BrokerState.RECOVERY

    run(story())


def test_an_id_that_was_handed_out_is_kept() -> None:  # R1
    async def story() -> None:
        controller = Controller()
        lifecycle = controller.lifecycle(broker_id=None)
        await lifecycle.register()
        assert lifecycle.broker_id == 7
        assert lifecycle.registration.broker_id == 7

    run(story())


def test_an_id_in_use_is_asked_for_until_the_other_one_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:  # R1
    async def story() -> None:
        controller = Controller()
        controller.refusals = [DuplicateBrokerRegistration("1 is alive") for _ in range(3)]
        with caplog.at_level(logging.WARNING):
            await controller.lifecycle().register()
        assert caplog.text.count("1 is alive") == 3

    run(story())


def test_in_the_end_the_refusal_is_told_and_not_the_silence() -> None:
    async def story() -> None:
        controller = Controller()
        controller.refusals = [DuplicateBrokerRegistration("1 is alive")]
        controller.refusals += [NetworkError("gone") for _ in range(100)]
        with pytest.raises(DuplicateBrokerRegistration):
            await controller.lifecycle().register()

    run(story())


def test_what_would_be_refused_again_is_not_asked_again() -> None:
    async def story() -> None:
        controller = Controller()
        controller.refusals = [InconsistentClusterId("another cluster")]
        with pytest.raises(InconsistentClusterId):
            await controller.lifecycle().register()
        assert len(controller.registrations) == 1

    run(story())


# -- heartbeats and the session


def test_it_wants_to_be_fenced_until_it_is_ready() -> None:  # R6
    async def story() -> None:
        controller = Controller()
        controller.answer = HeartbeatAnswer(False, True, False)
        lifecycle = controller.lifecycle()
        await lifecycle.register()
        async with Running(lifecycle):
            await until(lambda: bool(controller.beats), "a heartbeat")
            assert {beat.want_fence for beat in controller.beats} == {True}
            assert state(lifecycle) is BrokerState.RECOVERY
            assert not lifecycle.unfenced.is_set()
            controller.applied = 40
            controller.answer = HeartbeatAnswer(True, False, False)
            lifecycle.set_ready()
            await lifecycle.unfenced.wait()
            assert not controller.beats[-1].want_fence
            assert controller.beats[-1].applied_offset == 40
            assert state(lifecycle) is BrokerState.RUNNING
        assert controller.fencing == [False]

    run(story())


def test_a_session_lasts_from_when_an_answered_heartbeat_was_sent() -> None:
    async def story() -> None:
        controller = Controller()
        lifecycle = controller.lifecycle()
        await lifecycle.register()
        assert not lifecycle.session_alive(controller.clock.monotonic_ms())
        controller.latency_ms = 400
        sent_ms = controller.clock.monotonic_ms()
        async with Running(lifecycle):
            await lifecycle.unfenced.wait()
        assert lifecycle.session_alive(sent_ms + 999)
        assert not lifecycle.session_alive(sent_ms + 1_000)

    run(story())


def test_a_failed_heartbeat_keeps_no_session_alive_and_is_repeated() -> None:
    async def story() -> None:
        controller = Controller()
        lifecycle = controller.lifecycle()
        await lifecycle.register()
        async with Running(lifecycle):
            await lifecycle.unfenced.wait()
            sent_ms = controller.clock.monotonic_ms()
            controller.answer = NetworkError("gone")
            seen = len(controller.beats)
            await until(lambda: len(controller.beats) > seen + 3, "more heartbeats")
            assert not lifecycle.session_alive(sent_ms + 1_000)
            assert lifecycle.heartbeats_failed >= 3
            assert not lifecycle.is_fenced  # nobody has said so

    run(story())


def test_an_answer_that_says_fenced_closes_the_gate_at_once() -> None:
    async def story() -> None:
        controller = Controller()
        lifecycle = controller.lifecycle()
        await lifecycle.register()
        lifecycle.set_ready()
        async with Running(lifecycle):
            await lifecycle.unfenced.wait()
            controller.answer = HeartbeatAnswer(True, True, False)
            await until(lambda: lifecycle.is_fenced, "the fence")
            assert not lifecycle.session_alive(controller.clock.monotonic_ms())
            assert told_fenced(lifecycle)
            assert state(lifecycle) is BrokerState.RECOVERY
            controller.answer = HeartbeatAnswer(True, False, False)
            await lifecycle.unfenced.wait()
            assert not told_fenced(lifecycle)
        assert controller.fencing == [False, True, False]

    run(story())


def test_a_registration_that_is_gone_is_made_again() -> None:
    async def story() -> None:
        controller = Controller()
        lifecycle = controller.lifecycle()
        await lifecycle.register()
        lifecycle.set_ready()
        async with Running(lifecycle):
            await lifecycle.unfenced.wait()
            controller.answer = StaleEpoch("broker 1 is not registered")
            await until(lambda: len(controller.registrations) > 1, "another registration")
            controller.answer = HeartbeatAnswer(True, False, False)
            await lifecycle.unfenced.wait()
        again = controller.registrations[1]
        # The same incarnation, with the logs that it had at its last epoch.
        assert again.incarnation_id == controller.registrations[0].incarnation_id
        assert again.previous_epoch == 10
        assert controller.beats[-1].broker_epoch == lifecycle.broker_epoch

    run(story())


# -- stopping


def test_it_stops_when_the_controller_says_so() -> None:  # R7
    async def story() -> None:
        controller = Controller()
        lifecycle = controller.lifecycle()
        await lifecycle.register()
        lifecycle.set_ready()
        async with Running(lifecycle):
            await lifecycle.unfenced.wait()
            lifecycle.begin_stop()
            await until(lambda: controller.beats[-1].want_shut_down, "the wish")
            assert not controller.beats[-1].want_fence
            assert state(lifecycle) is BrokerState.STOPPING
            assert not lifecycle.may_stop.is_set()
            assert lifecycle.session_alive(controller.clock.monotonic_ms())  # it serves on
            controller.answer = HeartbeatAnswer(True, True, True)
            await lifecycle.may_stop.wait()
            assert state(lifecycle) is BrokerState.STOPPED

    run(story())


def test_a_broker_that_nobody_knows_any_more_may_stop() -> None:
    async def story() -> None:
        controller = Controller()
        lifecycle = controller.lifecycle()
        await lifecycle.register()
        controller.answer = StaleEpoch("gone")
        lifecycle.begin_stop()
        async with Running(lifecycle):
            await lifecycle.may_stop.wait()
        assert len(controller.registrations) == 1

    run(story())
