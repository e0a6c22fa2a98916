"""A broker's life as the controller sees it: registered, fenced, serving, on its way out (R1, R6).

    STARTING    registers; the answer is the broker epoch, which every request carries from then on
    RECOVERY    registered and fenced: catches up with the metadata, its own registration included
    RUNNING     unfenced
    STOPPING    asks to be relieved of its leaderships, and serves on until nothing depends on it
    STOPPED     may end, or has waited long enough

Heartbeats go on through all of this, at a fixed pace on a connection of their own; a failed one is
repeated at once, at another controller, and never backs off (KAFKA-14392, 19294). What they carry
is what the data plane has applied, not what was fetched.

Two clocks watch the session, and ours is the stricter one: it counts from when a heartbeat that was
answered had been *sent*, the controller's from when it arrived. An answer that says "fenced" keeps
no session alive: a broker that was woken may answer nothing until it is unfenced, and it is not
unfenced before it has applied the record that fenced it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum

from brokers.controller_wire import Heartbeat, HeartbeatAnswer, Registered, Registration
from kraftlog.clock import Clock
from kraftlog.errors import (
    DuplicateBrokerRegistration,
    KraftError,
    StaleEpoch,
)

logger = logging.getLogger(__name__)

RETRY_MS = 50
"""The pause after a heartbeat or registration that failed, or that is about to have an effect."""
REGISTER_TIMEOUT_MS_MIN = 1_000


class BrokerState(Enum):
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    STOPPING = 4
    STOPPED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleTiming:
    heartbeat_ms: int
    session_ms: int
    registration_ms: int
    """How long to try to register."""

    @property
    def request_ms(self) -> int:
        """When a heartbeat counts as lost: early enough for others to be tried in the session."""
        return max(1, self.session_ms // 4)


Register = Callable[[Registration, int], Awaitable[Registered]]
SendHeartbeat = Callable[[Heartbeat, int], Awaitable[HeartbeatAnswer]]
"""Both take how long to wait, in milliseconds, and raise KraftError."""


class Lifecycle:
    """`brokers.gate.ServingGate`. `run` belongs into a TaskGroup, after `register`."""

    def __init__(
        self,
        registration: Registration,
        timing: LifecycleTiming,
        *,
        register: Register,
        send_heartbeat: SendHeartbeat,
        applied_offset: Callable[[], int],
        clock: Clock,
        on_fencing: Callable[[bool], None] = lambda _fenced: None,
    ) -> None:
        """`on_fencing` hears whenever we are fenced or unfenced."""
        self.registration = registration
        self.state = BrokerState.STARTING
        self.registered: Registered | None = None
        self.unfenced = asyncio.Event()
        """Set while the controller says that we are not fenced."""
        self.may_stop = asyncio.Event()
        """Nothing depends on us any more."""
        self.heartbeats_failed = 0
        self._timing = timing
        self._register = register
        self._send_heartbeat = send_heartbeat
        self._applied_offset = applied_offset
        self._clock = clock
        self._on_fencing = on_fencing
        self._told_fenced = False
        self._is_ready = False
        self._wants_to_stop = False
        self._alive_since_ms: int | None = None
        """When the last heartbeat was sent that was answered, and not with "fenced"."""
        self._failing_since_ms: int | None = None
        self._hurry = asyncio.Event()

    # -- for others

    def session_alive(self, now_ms: int) -> bool:
        since_ms = self._alive_since_ms
        return since_ms is not None and now_ms - since_ms < self._timing.session_ms

    @property
    def broker_id(self) -> int:
        return 0 if self.registered is None else self.registered.broker_id

    @property
    def broker_epoch(self) -> int:
        return -1 if self.registered is None else self.registered.broker_epoch

    @property
    def told_fenced(self) -> bool:
        return self._told_fenced

    @property
    def is_fenced(self) -> bool:
        return not self.unfenced.is_set()

    def set_ready(self) -> None:
        """The data plane has the metadata: it may be counted on."""
        self._is_ready = True
        self._hurry.set()

    def begin_stop(self) -> None:
        """Ask to be relieved. `may_stop` tells when others have taken over."""
        if self.state is not BrokerState.STOPPED:
            self._set_state(BrokerState.STOPPING)
        self._wants_to_stop = True
        self._hurry.set()

    def _set_state(self, state: BrokerState) -> None:
        if state is not self.state:
            logger.info("broker %s: %s -> %s", self.broker_id, self.state.name, state.name)
            self.state = state

    # -- registration

    async def register(self) -> Registered:
        """Until the controller agrees. An id that another process uses is refused as long as that
        one is alive; after registration_ms the last refusal is raised.
        """
        deadline_ms = self._clock.monotonic_ms() + self._timing.registration_ms
        refusal: KraftError | None = None
        while True:
            try:
                return await self._register_once(deadline_ms)
            except KraftError as error:
                if not _passes(error):
                    raise
                # What a controller said tells more than that one did not answer.
                refusal = refusal if refusal and error.outcome_unknown else error
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    raise refusal from None
                self._log_refusal(error)
                await asyncio.sleep(min(self._pause_ms(error), left_ms) / 1000)

    async def _register_once(self, deadline_ms: int) -> Registered:
        left_ms = deadline_ms - self._clock.monotonic_ms()
        timeout_ms = max(1, min(left_ms, max(self._timing.request_ms, REGISTER_TIMEOUT_MS_MIN)))
        registered = await self._register(self.registration, timeout_ms)
        self.registered = registered
        self._told_fenced = False  # what this epoch will lead is not known yet
        # Should we have to register again, this is the same incarnation, with the same logs.
        self.registration = replace(
            self.registration,
            broker_id=registered.broker_id,
            previous_epoch=registered.broker_epoch,
        )
        self._set_state(BrokerState.RECOVERY)
        logger.info(
            "registered as broker %d, epoch %d", registered.broker_id, registered.broker_epoch
        )
        return registered

    def _pause_ms(self, error: KraftError) -> int:
        if isinstance(error, DuplicateBrokerRegistration):
            return self._timing.heartbeat_ms
        return RETRY_MS

    def _log_refusal(self, error: KraftError) -> None:
        level = logging.WARNING if isinstance(error, DuplicateBrokerRegistration) else logging.INFO
        logger.log(level, "not registered yet: %s", error)

    # -- heartbeats

    async def run(self) -> None:
        """Heartbeats until cancelled."""
        while True:
            answered = await self._beat()
            is_settled = answered and not (self._is_ready and self.is_fenced)
            is_settled = is_settled and not self._wants_to_stop
            await self._rest(self._timing.heartbeat_ms if is_settled else RETRY_MS)

    async def _rest(self, pause_ms: int) -> None:
        """Until the next heartbeat is due, or there is something new to say."""
        try:
            async with asyncio.timeout(pause_ms / 1000):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()

    async def _beat(self) -> bool:
        """Send one heartbeat; whether it was answered."""
        sent_ms = self._clock.monotonic_ms()
        beat = Heartbeat(
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            applied_offset=self._applied_offset(),
            want_fence=not self._is_ready,
            want_shut_down=self._wants_to_stop,
        )
        try:
            answer = await self._send_heartbeat(beat, self._timing.request_ms)
        except StaleEpoch as error:
            await self._register_again(error)
            return False
        except KraftError as error:
            self._note_failure(error)
            return False
        self._note_answer()
        self._take(answer, sent_ms)
        return True

    def _note_failure(self, error: KraftError) -> None:
        self.heartbeats_failed += 1
        if self._failing_since_ms is None:
            self._failing_since_ms = self._clock.monotonic_ms()
            logger.info("heartbeats have no effect: %s", error)

    def _note_answer(self) -> None:
        if self._failing_since_ms is not None:
            passed_ms = self._clock.monotonic_ms() - self._failing_since_ms
            logger.info("heartbeats are answered again, after %d ms", passed_ms)
            self._failing_since_ms = None

    def _take(self, answer: HeartbeatAnswer, sent_ms: int) -> None:
        if answer.is_fenced:
            self._fenced()
        else:
            self._told_fenced = False
            self._alive_since_ms = sent_ms
            if not self.unfenced.is_set():
                logger.info("broker %d is unfenced", self.broker_id)
                self.unfenced.set()
                self._on_fencing(False)
            if self.state is BrokerState.RECOVERY:
                self._set_state(BrokerState.RUNNING)
        if answer.should_shut_down and self._wants_to_stop:
            self._set_state(BrokerState.STOPPED)
            self.may_stop.set()

    def _fenced(self) -> None:
        self._alive_since_ms = None
        if self.unfenced.is_set():
            logger.warning("broker %d is fenced", self.broker_id)
            self._told_fenced = True
            self.unfenced.clear()
            self._on_fencing(True)
        if self.state is BrokerState.RUNNING:
            self._set_state(BrokerState.RECOVERY)

    async def _register_again(self, error: KraftError) -> None:
        """Our registration is gone: an operator removed it, or another process took our id."""
        logger.warning("broker %d must register again: %s", self.broker_id, error)
        self._fenced()
        if self._wants_to_stop:
            self._set_state(BrokerState.STOPPED)
            self.may_stop.set()
        else:
            await self.register()


def _passes(error: KraftError) -> bool:
    """Whether the same registration may be accepted later."""
    passing = error.retriable or error.outcome_unknown
    return passing or isinstance(error, DuplicateBrokerRegistration)
