"""What the active controller does about brokers: it hears their heartbeats, fences those that went
silent or lag behind, and lets them back in.

Heartbeats do not queue behind decisions: nearly all of them change nothing and are answered at
once. Only one that has an effect (a broker that has caught up, one that wants to stop) becomes an
operation. Brokers are fenced one at a time, so that each decision sees what the one before it did.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from kraftlog.config import Config
from kraftlog.errors import KraftError
from metadata_log.decide import Decision
from metadata_log.decide.bootstrap import bootstrap
from metadata_log.decide.brokers import check_epoch
from metadata_log.decide.elections import elect_leaderless, rebalance
from metadata_log.decide.fencing import fence
from metadata_log.decide.heartbeats import Heartbeat, HeartbeatReply, heartbeat
from metadata_log.image import Image, Role
from metadata_log.places import Agenda
from metadata_log.records import Cause, CauseKind, FenceCause
from quorum.controller import Answer, Controller, Operation, Step, step_of
from quorum.sessions import Sessions, WatchTiming

logger = logging.getLogger(__name__)

OnHeartbeat = Callable[[HeartbeatReply | KraftError], None]

Observe = Callable[[float], None]

NOTHING = b""
"""The answer to what the controller asked of itself."""


def _nothing_to_note() -> None:
    pass


def _nobody_observes(_seconds: float) -> None:
    pass


class BrokerWatch:
    """A duty of the controller; it is idle while the controller is not active."""

    def __init__(self, controller: Controller, timing: WatchTiming, static: Config) -> None:
        self._controller = controller
        self._timing = timing
        self._static = static
        self.sessions = Sessions(session_ms=timing.session_ms, lag_ms=timing.lag_ms)
        self._shutdown_offsets: dict[int, tuple[int, int]] = {}
        """Of brokers that shut down: their epoch, and the end of what moved their last leader."""
        self._busy: set[int] = set()
        """Brokers about which an operation of ours is on its way."""
        self.sessions_timed_out = 0
        """Brokers that were fenced because they fell silent."""
        self.observe_failover: Observe = _nobody_observes
        """Is told how long it took from the last heartbeat of a broker that led partitions until
        their new leaders were committed, in seconds.
        """
        self._rebalance_at_ms = 0
        self._is_rebalancing = False

    # -- a duty

    def begin(self) -> None:
        image, now_ms = self._controller.committed, self._controller.ledger.now_ms()
        brokers = [(broker.id, broker.epoch) for broker in image.sorted_brokers()]
        self.sessions.begin(brokers, committed=image.end_offset, now_ms=now_ms)
        self._rebalance_at_ms = now_ms + (self._timing.rebalance_ms or 0)
        if not image.features:
            self._ask_itself("bootstrap", lambda image, _: bootstrap(image, static=self._static))
        if image.places(Role.LEADERLESS):
            self.elect_leaderless("a new controller")

    def end(self) -> None:
        self.sessions.begin((), committed=0, now_ms=0)
        self._shutdown_offsets.clear()
        self._busy.clear()
        self._is_rebalancing = False

    # -- time

    def tick(self) -> None:
        """Whatever is due. At most one broker is being fenced at a time."""
        if not self._controller.is_active:
            return
        now_ms = self._controller.ledger.now_ms()
        if not self._busy:
            self._fence_one(now_ms)
        if self._timing.rebalance_ms is not None and now_ms >= self._rebalance_at_ms:
            self._rebalance_at_ms = now_ms + self._timing.rebalance_ms
            self._rebalance()

    def next_tick_ms(self) -> int:
        now_ms = self._controller.ledger.now_ms()
        check_ms = self.sessions.next_check_ms(now_ms)
        if self._timing.rebalance_ms is None or not self._controller.is_active:
            return check_ms  # a standby has no rebalance to come, and none that is overdue
        return min(check_ms, self._rebalance_at_ms)

    def _fence_one(self, now_ms: int) -> None:
        for broker_id in self.sessions.silent(now_ms):
            if self._may_be_fenced(broker_id):
                self._fence(broker_id, FenceCause.SESSION_TIMEOUT)
                return
        for broker_id in self.sessions.lagging(now_ms):
            if self._may_be_fenced(broker_id):
                self._fence(broker_id, FenceCause.METADATA_LAG)
                return

    def _may_be_fenced(self, broker_id: int) -> bool:
        broker = self._controller.pending.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def _fence(self, broker_id: int, why: FenceCause) -> None:
        is_silent = why is FenceCause.SESSION_TIMEOUT
        kind = CauseKind.SESSION_TIMEOUT if is_silent else CauseKind.METADATA_LAG
        after_ms = self._timing.session_ms if is_silent else self._timing.lag_ms
        cause = Cause(kind, f"broker {broker_id}, {after_ms} ms")

        def decide(image: Image, agenda: Agenda | None) -> Decision[bool]:
            if agenda is None and not self._still(broker_id, why):
                return Decision((), response=False)  # a heartbeat came while this waited
            return fence(image, broker_id, why, cause, static=self._static, agenda=agenda)

        logger.warning("fencing broker %d: %s", broker_id, cause)
        self._busy.add(broker_id)
        note_end = self._note_silence(broker_id) if is_silent else _nothing_to_note

        def done() -> None:
            self._busy.discard(broker_id)
            note_end()
            self.tick()  # there may be another one

        self._ask_itself(f"fence broker {broker_id}", decide, on_done=done)

    def _note_silence(self, broker_id: int) -> Callable[[], None]:
        """A broker is about to be fenced; what this gives is to be called when that is over."""
        session = self.sessions.find(broker_id)
        heard_ms = session.touched_ms if session else self._controller.ledger.now_ms()
        led = bool(len(self._controller.committed.places(Role.LEADER, broker_id)))

        def note_end() -> None:
            broker = self._controller.committed.brokers.get(broker_id)
            if broker is None or not broker.is_fenced:
                return  # it was heard of again, or we no longer decide
            self.sessions_timed_out += 1
            if led:
                self.observe_failover((self._controller.ledger.now_ms() - heard_ms) / 1000)

        return note_end

    def _still(self, broker_id: int, why: FenceCause) -> bool:
        now_ms = self._controller.ledger.now_ms()
        if broker_id not in self._controller.pending.brokers:
            return False
        if why is FenceCause.SESSION_TIMEOUT:
            return not self.sessions.is_alive(broker_id, now_ms)
        return self.sessions.is_lagging(broker_id, now_ms)

    def _rebalance(self) -> None:
        if self._is_rebalancing or not self._controller.pending.places(Role.DISPLACED):
            return
        self._is_rebalancing = True

        def done() -> None:
            self._is_rebalancing = False

        self._ask_itself(
            "rebalance leaders",
            lambda image, agenda: rebalance(image, static=self._static, agenda=agenda),
            on_done=done,
        )

    def elect_leaderless(self, why: str) -> None:
        """Elect where there is no leader and a live replica may be one."""
        cause = Cause(CauseKind.UNFENCED, why)
        self._ask_itself(
            "elect where there is no leader",
            lambda image, agenda: elect_leaderless(
                image, cause, static=self._static, agenda=agenda
            ),
        )

    def _ask_itself(
        self,
        name: str,
        decide: Callable[[Image, Agenda | None], Decision[object]],
        *,
        on_done: Callable[[], None] = lambda: None,
    ) -> None:
        def step(image: Image, agenda: Agenda | None) -> Step:
            return step_of(decide(image, agenda), lambda _response, _end: NOTHING)

        def on_answer(answer: Answer) -> None:
            on_done()
            if isinstance(answer, KraftError) and self._controller.is_active:
                logger.warning("%s: %s; it will be tried again", name, answer)

        self._controller.submit(Operation(name, step, on_answer))

    # -- sessions

    def registered(self, broker_id: int, broker_epoch: int) -> None:
        """A new incarnation, which has a full session to be heard of."""
        known = self.sessions.find(broker_id)
        if known is None or known.broker_epoch != broker_epoch:
            controller = self._controller
            self._shutdown_offsets.pop(broker_id, None)
            self.sessions.open(
                broker_id,
                broker_epoch,
                committed=controller.committed.end_offset,
                now_ms=controller.ledger.now_ms(),
            )

    def unregistered(self, broker_id: int) -> None:
        self.sessions.close(broker_id)
        self._shutdown_offsets.pop(broker_id, None)

    def is_alive(self, broker_id: int) -> bool:
        return self.sessions.is_alive(broker_id, self._controller.ledger.now_ms())

    # -- heartbeats

    def heartbeat(self, beat: Heartbeat, on_answer: OnHeartbeat) -> None:
        """Answered at once, unless it has an effect; then when that is committed."""
        controller = self._controller
        if not controller.is_active or beat.broker_epoch >= controller.ledger.end_offset:
            # An epoch that our log has not reached: there is a newer controller than us.
            on_answer(controller.not_controller())
            return
        try:
            check_epoch(controller.pending, beat.broker_id, beat.broker_epoch)
        except KraftError as error:
            on_answer(error)
            return
        self.sessions.touch(
            beat.broker_id,
            applied_offset=beat.applied_offset,
            committed=controller.committed.end_offset,
            now_ms=controller.ledger.now_ms(),
        )
        self._act_on(beat, on_answer)

    def _act_on(self, beat: Heartbeat, on_answer: OnHeartbeat) -> None:
        decision = self._decide_heartbeat(self._controller.pending, beat, None)
        if beat.broker_id in self._busy or not (decision.records or decision.agenda):
            self._note_shutdown(beat, decision.response, self._controller.pending.end_offset)
            on_answer(self._cautious(beat.broker_id, decision.response))
            return
        self._busy.add(beat.broker_id)
        response = decision.response

        def step(image: Image, agenda: Agenda | None) -> Step:
            nonlocal response
            decided = self._decide_heartbeat(image, beat, agenda)
            response = decided.response
            plain = step_of(decided, lambda _response, _end: NOTHING)
            return replace(plain, then=lambda end: self._note_shutdown(beat, response, end))

        def finish(answer: Answer) -> None:
            self._busy.discard(beat.broker_id)
            on_answer(answer if isinstance(answer, KraftError) else response)

        self._controller.submit(Operation(f"heartbeat of broker {beat.broker_id}", step, finish))

    def _decide_heartbeat(
        self, image: Image, beat: Heartbeat, agenda: Agenda | None
    ) -> Decision[HeartbeatReply]:
        return heartbeat(
            image,
            beat,
            shutdown_offset=self._shutdown_offset(beat),
            active_offset=self._active_offset(image, beat),
            static=self._static,
            agenda=agenda,
        )

    def _shutdown_offset(self, beat: Heartbeat) -> int | None:
        epoch, offset = self._shutdown_offsets.get(beat.broker_id, (-1, -1))
        return offset if epoch == beat.broker_epoch else None

    def _active_offset(self, image: Image, beat: Heartbeat) -> int:
        """How far even the slowest active broker has come; only a shutdown needs to know."""
        if not beat.want_shut_down:
            return 0
        others = [broker.id for broker in image.brokers.values() if broker.is_active]
        lowest = self.sessions.lowest_applied(others)
        return image.end_offset if lowest is None else lowest

    def _note_shutdown(self, beat: Heartbeat, response: HeartbeatReply, end_offset: int) -> None:
        """Set once, or the shutdown would never end (KAFKA-14292)."""
        if response.has_moved and self._shutdown_offset(beat) is None:
            self._shutdown_offsets[beat.broker_id] = (beat.broker_epoch, end_offset)

    def _cautious(self, broker_id: int, response: HeartbeatReply) -> HeartbeatReply:
        """A broker is unfenced when that is committed, and not when it is likely."""
        broker = self._controller.committed.brokers.get(broker_id)
        if broker is None or broker.is_fenced:
            return replace(response, is_fenced=True)
        return response
