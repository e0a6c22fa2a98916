from brokers.exchange import Exchange
from brokers.requests_table import RequestTable
from brokers.stream import BrokerStream
from kraftlog.framing import Envelope
from kraftlog.metrics import Registry
from kraftlog.rpc import broker_pb2, common_pb2
from tests.brokers.test_exchange import Parked


def requests(*correlation_ids: int) -> bytes:
    return broker_pb2.BrokerRequests(
        requests=[
            broker_pb2.BrokerRequest(
                header=common_pb2.RequestHeader(correlation_id=number, client_id="c"),
                metadata=broker_pb2.MetadataRequest(),
            )
            for number in correlation_ids
        ]
    ).SerializeToString()


class Story:
    """A stream whose requests are held until a test answers them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.table = RequestTable(60_000, lambda: self.seconds)
        self.held: list[Exchange] = []
        self.sent: list[Envelope] = []
        self.stream = BrokerStream(self.table, self._hold)

    def _hold(
        self, envelope: broker_pb2.BrokerRequest, exchange: Exchange, stream: BrokerStream
    ) -> None:
        assert stream is self.stream
        assert envelope.header.correlation_id == exchange.correlation_id
        self.held.append(exchange)
        self.seconds += 1

    def receive(self, *correlation_ids: int) -> None:
        for envelope in self.stream.parse(requests(*correlation_ids)):
            self.stream.handle(envelope, self.sent.append)

    def stage(self, stage: str) -> str:
        registry = Registry()
        self.table.register(registry)
        wanted = f'kraftlog_request_seconds_total{{api="metadata",stage="{stage}"}} '
        return next(
            line.removeprefix(wanted)
            for line in registry.text().splitlines()
            if line.startswith(wanted)
        )


def test_a_request_is_open_until_its_reply_is_written() -> None:
    story = Story()
    story.receive(1, 2)
    assert story.table.open == 2
    story.held[1].answer(story.held[1].begin_reply())
    assert story.table.open == 2
    story.seconds += 5
    story.stream.written(1)
    assert story.table.open == 1
    # The second waited for the first; both took a second; the reply took five.
    assert story.stage("queue") == "1"
    assert story.stage("local") == "1"
    assert story.stage("send") == "5"
    assert len(story.sent) == 1


def test_what_needs_no_reply_is_over_at_once() -> None:
    story = Story()
    story.receive(1)
    story.held[0].stay_silent()
    assert story.table.open == 0
    assert story.sent == [b""]


def test_when_a_stream_ends_all_that_was_open_on_it_is_forgotten() -> None:
    story = Story()
    story.receive(1, 2, 3)
    parked = story.held[0].parked = Parked()
    story.held[2].answer(story.held[2].begin_reply())
    story.stream.abandon()
    assert parked.cancelled == 1
    assert story.table.open == 0
    story.held[1].answer(story.held[1].begin_reply())
    assert len(story.sent) == 1


def test_a_request_of_a_kind_that_is_not_known_is_counted_too() -> None:
    story = Story()
    empty = broker_pb2.BrokerRequests(requests=[broker_pb2.BrokerRequest()])
    for envelope in story.stream.parse(empty.SerializeToString()):
        story.stream.handle(envelope, story.sent.append)
    assert story.held[0].entry.api.name == "unknown"
