"""Requests that can be read and make no sense, each kind there is: answered or refused by name, in
time, and nothing that was there before is harmed.
"""

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftlog.rpc import broker_pb2, controller_pb2, raft_pb2
from tests.bad_input.messages import messages, type_of
from tests.bad_input.victim import Listener, Victim

CALL_SECONDS = 10.0
WAIT_SECONDS = 0.2
"""For requests that may wait for something to happen."""
MAY_WAIT = {"fetch", "Fetch"}
NEGOTIATION = "api_versions"
"""Asked before one knows which cluster this is."""


def kinds(envelope: type[Message]) -> list[tuple[str, type[Message]]]:
    """What a request may be: name and type."""
    alternatives = type_of(envelope.DESCRIPTOR.full_name).oneofs_by_name["request"].fields
    return [
        (field.name, GetMessageClass(field.message_type))
        for field in alternatives
        if field.message_type is not None
    ]


def calls() -> list[tuple[str, type[Message]]]:
    """The unary calls of the quorum, and what each takes."""
    methods = raft_pb2.DESCRIPTOR.services_by_name["Raft"].methods
    unary = [each for each in methods if not each.client_streaming]
    return [(each.name, GetMessageClass(each.input_type)) for each in unary]


# What one example does is looked at for all of them together, by the fixture.
NONSENSE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def ask(listener: Listener, method: str, message: Message, seconds: float) -> bytes | None:
    """The reply; None if the server still waits for something."""
    with grpc.insecure_channel(listener.address) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        try:
            return call(message.SerializeToString(), timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and seconds == WAIT_SECONDS:
                return None
            raise


def seconds_for(name: str) -> float:
    return WAIT_SECONDS if name in MAY_WAIT else CALL_SECONDS


def request_of(
    envelope: type[Message], name: str, message: Message, cluster_id: bytes | None
) -> Message:
    fields: dict[str, object] = {name: message, "cluster_id": cluster_id}
    return envelope(**fields)


def is_answered(name: str, reply: Message, cluster_id: bytes | None) -> bool:
    """By a reply, or by name; of another cluster always by name."""
    if reply.HasField("error"):
        return True
    return reply.HasField(name) and (cluster_id is None or name == NEGOTIATION)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("name", "kind"), kinds(broker_pb2.BrokerRequest))
def test_a_broker(unharmed: Victim, name: str, kind: type[Message]) -> None:
    @NONSENSE
    @given(messages(kind), st.none() | st.binary(max_size=20))
    def one(message: Message, cluster_id: bytes | None) -> None:
        request = request_of(broker_pb2.BrokerRequest, name, message, cluster_id)
        listener = unharmed.listeners["b1"]
        said = ask(listener, "/kraftlog.rpc.Broker/Call", request, seconds_for(name))
        if said is not None and not is_silent(message):
            assert is_answered(name, broker_pb2.BrokerReply.FromString(said), cluster_id)

    one()


def is_silent(message: Message) -> bool:
    """With acks=0 there is nothing to say."""
    return isinstance(message, broker_pb2.ProduceRequest) and message.acks == 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("name", "kind"), kinds(controller_pb2.ControllerRequest))
def test_the_controller(unharmed: Victim, name: str, kind: type[Message]) -> None:
    @NONSENSE
    @given(messages(kind), st.none() | st.binary(max_size=20))
    def one(message: Message, cluster_id: bytes | None) -> None:
        request = request_of(controller_pb2.ControllerRequest, name, message, cluster_id)
        listener = unharmed.listeners["c1"]
        said = ask(listener, "/kraftlog.rpc.Controller/Call", request, CALL_SECONDS)
        assert is_answered(name, controller_pb2.ControllerReply.FromString(said or b""), cluster_id)

    one()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("name", "kind"), calls())
def test_the_quorum(unharmed: Victim, name: str, kind: type[Message]) -> None:
    @NONSENSE
    @given(messages(kind))
    def one(message: Message) -> None:
        """An answer of whatever sort: what each refusal says is tested with the core."""
        ask(unharmed.listeners["c1"], f"/kraftlog.rpc.Raft/{name}", message, seconds_for(name))

    one()


@pytest.mark.parametrize("listener", ["b1", "c1"])
def test_a_request_of_no_kind(unharmed: Victim, listener: str) -> None:
    service = "Broker" if listener == "b1" else "Controller"
    kind = broker_pb2.BrokerReply if listener == "b1" else controller_pb2.ControllerReply
    empty = broker_pb2.BrokerRequest()
    method = f"/kraftlog.rpc.{service}/Call"
    said = ask(unharmed.listeners[listener], method, empty, CALL_SECONDS)
    assert kind.FromString(said or b"").HasField("error")
