"""Calls of the controllers over the simulated network: lost, late, twice, or answered."""

from collections.abc import Callable, Iterable

from chaos.sim.network import Network
from chaos.sim.node import SimNode
from chaos.sim.schedule import Schedule
from chaos.sim.trace import Trace
from kraftlog.errors import ErrorCode
from kraftlog.rpc import controller_pb2

Request = controller_pb2.ControllerRequest
Reply = controller_pb2.ControllerReply
OnReply = Callable[[Reply | None], None]
Receive = Callable[[SimNode, bytes, Callable[[bytes], None]], None]
"""Gives a request to the controller on a node."""

TIMEOUT_MS = 800.0
NO_CALLER_DIES = (0, 0)


class Caller:
    """Somebody who asks controllers: the active one as far as known, or any."""

    def __init__(
        self,
        sender_id: int,
        name: str,
        *,
        schedule: Schedule,
        network: Network,
        trace: Trace,
        receive: Receive,
    ) -> None:
        self._sender_id = sender_id
        self._name = name
        self._schedule = schedule
        self._network = network
        self._trace = trace
        self._receive = receive
        self._leader_id: int | None = None

    def choose(self, controllers: Iterable[SimNode], pick: Callable[[int], int]) -> SimNode | None:
        """Whom to ask: who was said to lead, or somebody. `pick` is the caller's dice."""
        known = list(controllers)
        if not known:
            return None
        leader = next((each for each in known if each.node_id == self._leader_id), None)
        if leader is not None and pick(8):
            return leader
        return known[pick(len(known))]

    def call(self, target: SimNode, request: Request, on_reply: OnReply) -> None:
        """`on_reply` is called once: with the reply, or with None if none came in time."""
        data = request.SerializeToString(deterministic=True)
        what = request.WhichOneof("request")
        self._trace.add(f"{self._name} -> {target.name} {what}", raw=data)
        waiting = [on_reply]

        def finish(reply: Reply | None) -> None:
            if waiting:
                waiting.pop()(reply)

        def take(raw: bytes) -> None:
            reply = Reply.FromString(raw)
            self._learn(target, reply)
            self._trace.add(f"{self._name} <- {target.name} {what}", reply.error.message, raw)
            finish(reply)

        def deliver(raw: bytes) -> None:
            if target.is_up:
                back = (target.node_id, self._sender_id)
                self._receive(
                    target, raw, lambda answer: self._network.transfer(back, answer, take)
                )
            else:
                self._leader_id = None

        self._network.transfer((self._sender_id, target.node_id), data, deliver)
        self._schedule.later(TIMEOUT_MS, lambda: self._time_out(finish, waiting))

    def _time_out(self, finish: OnReply, waiting: list[OnReply]) -> None:
        if waiting:
            self._leader_id = None
            finish(None)

    def _learn(self, target: SimNode, reply: Reply) -> None:
        if reply.error.code == ErrorCode.NOT_CONTROLLER:
            told = reply.error.leader.leader.node_id
            self._leader_id = told or None
        elif not reply.HasField("error"):
            self._leader_id = target.node_id
