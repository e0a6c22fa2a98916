from brokers.exchange import Exchange
from brokers.requests_table import RequestTable
from brokers.wire import EMPTY_DIRECTORY
from kraftlog.apis import Api
from kraftlog.errors import ErrorCode, InvalidRequest
from kraftlog.framing import Envelope
from kraftlog.rpc import broker_pb2


class Parked:
    def __init__(self) -> None:
        self.cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


def exchange() -> tuple[Exchange, list[bytes], RequestTable]:
    table = RequestTable(1_000)
    sent: list[bytes] = []

    def send(envelope: Envelope) -> None:
        sent.append(b"".join(envelope) if isinstance(envelope, tuple) else envelope)

    return Exchange(table.begin(Api("metadata"), 0), 9, table, send), sent, table


def test_it_is_answered_once_under_its_correlation_id() -> None:
    asked, sent, _ = exchange()
    reply = asked.begin_reply()
    reply.init_producer_id.producer_id = 5
    before = asked.is_open
    asked.answer(reply)
    asked.answer(reply)
    assert (before, asked.is_open) == (True, False)
    [envelope] = [broker_pb2.BrokerReply.FromString(each) for each in sent]
    assert (envelope.correlation_id, envelope.init_producer_id.producer_id) == (9, 5)


def test_an_encoded_message_makes_the_same_envelope() -> None:
    asked, sent, _ = exchange()
    message = broker_pb2.MetadataReply(offset=70_000)
    field = broker_pb2.BrokerReply.METADATA_FIELD_NUMBER
    asked.answer_encoded(field, message.SerializeToString())
    assert broker_pb2.BrokerReply.FromString(sent[0]) == broker_pb2.BrokerReply(
        correlation_id=9, metadata=message
    )


def test_a_whole_envelope_goes_out_as_it_is() -> None:
    asked, sent, _ = exchange()
    asked.answer_envelope((b"enc", b"oded"))
    assert sent == [b"encoded"]


def test_a_refusal_counts_as_failed() -> None:
    asked, sent, _ = exchange()
    asked.refuse(InvalidRequest("wrong", hint="right"), EMPTY_DIRECTORY)
    error = broker_pb2.BrokerReply.FromString(sent[0]).error
    assert (error.code, error.message, error.hint) == (
        ErrorCode.INVALID_REQUEST,
        "wrong",
        "right",
    )
    assert asked.entry.failed


def test_who_wants_no_answer_gets_none() -> None:
    asked, sent, _ = exchange()
    asked.stay_silent()
    assert sent == [b""]


def test_when_whoever_asked_is_gone_what_is_parked_is_forgotten() -> None:
    asked, sent, table = exchange()
    parked = asked.parked = Parked()
    asked.abandon()
    asked.stay_silent()
    assert (parked.cancelled, sent, table.open) == (1, [], 0)
