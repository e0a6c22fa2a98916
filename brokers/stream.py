"""One stream of requests: what is open on it, and in which order produce requests are answered."""

from collections import deque
from collections.abc import Callable, Sequence

from brokers.apis import APIS, UNKNOWN
from brokers.exchange import Exchange, SendReply
from brokers.reply_order import ReplyOrder
from brokers.requests_table import Entry, RequestTable
from kraftlog.framing import Envelope
from kraftlog.rpc import broker_pb2

Handle = Callable[[broker_pb2.BrokerRequest, Exchange, "BrokerStream"], None]


class BrokerStream:
    def __init__(self, table: RequestTable, handle: Handle) -> None:
        self.order = ReplyOrder()
        self._table = table
        self._handle = handle
        self._arrived = 0.0
        self._open: set[Exchange] = set()
        self._unwritten: deque[Entry] = deque()
        """Of replies that were given to the transport, in that order."""

    def parse(self, message: bytes) -> Sequence[broker_pb2.BrokerRequest]:
        self.arrive()
        return broker_pb2.BrokerRequests.FromString(message).requests

    def arrive(self) -> None:
        """A message came in."""
        self._arrived = self._table.now()

    def handle(self, envelope: broker_pb2.BrokerRequest, send: SendReply) -> None:
        api = APIS.find(envelope.WhichOneof("request")) or UNKNOWN
        entry = self._table.begin(api, self._arrived)
        header = envelope.header
        entry.client_id, entry.correlation_id = header.client_id, header.correlation_id

        def finish(reply: Envelope) -> None:
            self._open.discard(exchange)
            if reply:
                self._unwritten.append(entry)
            else:
                self._table.finish(entry)
            send(reply)

        exchange = Exchange(entry, header.correlation_id, self._table, finish)
        self._open.add(exchange)
        self._handle(envelope, exchange, self)
        entry.returned = self._table.now()

    def written(self, count: int) -> None:
        """So many replies are out."""
        for _ in range(count):
            self._table.finish(self._unwritten.popleft())

    def abandon(self) -> None:
        """The stream is over: nobody waits for what is still open."""
        self.written(len(self._unwritten))
        for exchange in list(self._open):
            exchange.abandon()
        self._open.clear()
