"""A controller with its watch and calls on a log in a list, and brokers that are only messages."""

from dataclasses import dataclass, field

from kraftlog.config import Config, load
from kraftlog.config_keys import Scope
from kraftlog.errors import KraftError, WireError, from_wire
from kraftlog.rpc import common_pb2, controller_pb2
from kraftlog.types import Uuid
from metadata_log.decide.features import SUPPORTED
from quorum.admin_calls import AdminCalls
from quorum.broker_calls import BrokerCalls
from quorum.broker_watch import BrokerWatch
from quorum.config import watch_timing
from quorum.controller import Controller
from quorum.controller_service import APIS, Call, ControllerService, LeaderNow
from quorum.core.messages import ReplicaKey, Voter
from quorum.read_calls import ReadCalls
from tests.quorum.ledger import ListLedger

CLUSTER = Uuid(b"the cluster's id")
SESSION_MS = 1_500
LEADER = Voter(ReplicaKey(2, Uuid(b"the leader's dir")), "127.0.0.1:9102")

Reply = controller_pb2.ControllerReply


class CountingDraw:
    """Dice that always show the lowest number, and ids in order."""

    def __init__(self) -> None:
        self._uuids = 0

    def below(self, limit: int) -> int:
        return min(0, limit - 1)

    def uuid(self) -> Uuid:
        self._uuids += 1
        return Uuid(b"topic id" + self._uuids.to_bytes(8, "big"))


@dataclass
class Governed:
    """`ask` does everything up to the commit; `send` only hands over."""

    config: Config = field(
        default_factory=lambda: load(Scope.CONTROLLER, flags={"timing.profile": "fast"})
    )
    applied: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.controller = Controller(1, leader_hint=lambda: "node 2 is")
        self.ledger = ListLedger(self.controller)
        self.watch = BrokerWatch(self.controller, watch_timing(self.config), self.config)
        self.controller.attach(self.ledger, self.watch)
        self.service = ControllerService(
            self._calls(),
            cluster_id=CLUSTER,
            now_ms=self.ledger.now_ms,
            leader=lambda: LeaderNow(7, LEADER),
        )

    def _calls(self) -> dict[str, Call]:
        controller, watch, config = self.controller, self.watch, self.config
        groups = (
            BrokerCalls(controller, watch, config, CLUSTER),
            AdminCalls(controller, watch, config, CountingDraw()),
            ReadCalls(controller, watch, config, cluster_id=CLUSTER, node_id=1),
        )
        return {n: getattr(g, n) for g in groups for n in APIS.names if hasattr(g, n)}

    # -- requests

    def send(self, request: controller_pb2.ControllerRequest) -> list[Reply]:
        """Hand a request over; its reply will be in the list."""
        replies: list[Reply] = []
        request.header.client_id = request.header.client_id or "a test"
        self.service.dispatch(request, replies.append)
        return replies

    def ask(self, request: controller_pb2.ControllerRequest) -> Reply:
        replies = self.send(request)
        self.ledger.settle()
        assert len(replies) == 1, "answered once"
        return replies[0]

    # -- brokers

    def register(
        self, broker_id: int, *, incarnation: int = 1, previous_epoch: int | None = None
    ) -> Reply:
        reply = self.ask(registration(broker_id, incarnation, previous_epoch))
        if not reply.HasField("error"):
            self.epochs[reply.register_broker.broker_id] = reply.register_broker.broker_epoch
        return reply

    def beat(
        self, broker_id: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> Reply:
        """A heartbeat of a broker that has applied all that is committed."""
        return self.ask(
            heartbeat(
                broker_id,
                self.epochs[broker_id],
                applied=self.applied.get(broker_id, self.controller.committed.end_offset),
                want_fence=want_fence,
                want_shut_down=want_shut_down,
            )
        )

    def start(self, *broker_ids: int) -> None:
        """Become active, and have these brokers registered and unfenced."""
        self.ledger.lead(1)
        self.ledger.settle()
        for broker_id in broker_ids:
            self.register(broker_id)
            assert not self.beat(broker_id).heartbeat.is_fenced

    def pass_time(self, ms: int) -> None:
        self.ledger.now += ms
        self.watch.tick()
        self.ledger.settle()

    def is_fenced(self, broker_id: int) -> bool:
        return self.controller.committed.brokers[broker_id].is_fenced

    def create(self, name: str, *replicas: tuple[int, ...]) -> None:
        topic = controller_pb2.NewTopic(name=name)
        for brokers in replicas:
            topic.assignments.add(broker_ids=brokers)
        create = controller_pb2.CreateTopicsRequest(topics=[topic])
        reply = self.ask(controller_pb2.ControllerRequest(create_topics=create))
        raise_error(reply)
        raise_error(reply.create_topics.topics[0])


def registration(
    broker_id: int, incarnation: int = 1, previous_epoch: int | None = None
) -> controller_pb2.ControllerRequest:
    request = controller_pb2.RegisterBrokerRequest(
        broker_id=broker_id,
        incarnation_id=f"incarnation{incarnation:5}".encode(),
        endpoint=common_pb2.Endpoint(host="127.0.0.1", port=9000 + broker_id),
        log_dir_ids=[f"log dir {broker_id:8}".encode()],
        previous_broker_epoch=previous_epoch,
        features=[
            controller_pb2.FeatureRange(
                name=each.name, min_level=each.min_level, max_level=each.max_level
            )
            for each in SUPPORTED.values()
        ],
    )
    return controller_pb2.ControllerRequest(register_broker=request)


def heartbeat(
    broker_id: int,
    epoch: int,
    *,
    applied: int,
    want_fence: bool = False,
    want_shut_down: bool = False,
) -> controller_pb2.ControllerRequest:
    beat = controller_pb2.HeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=epoch,
        applied_offset=applied,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
    )
    return controller_pb2.ControllerRequest(heartbeat=beat)


def error_of(message: object) -> KraftError | None:
    """The error that a reply, or a part of one, carries."""
    error = getattr(message, "error", None)
    if not isinstance(error, common_pb2.Error) or not error.code:
        return None
    return from_wire(WireError(error.code, error.message, error.hint))


def raise_error(message: object) -> None:
    error = error_of(message)
    if error is not None:
        raise error
