"""One request on its way, from the envelope that brought it to the reply that ends it."""

from collections.abc import Callable, Coroutine
from typing import Protocol

from brokers.requests_table import Entry, RequestTable
from brokers.wire import Directory, encode_error
from kraftlog.errors import KraftError
from kraftlog.framing import Envelope, enclose
from kraftlog.rpc import broker_pb2

SendReply = Callable[[Envelope], None]
"""Takes the encoded envelope of a reply; an empty one if the sender wants none."""

NO_REPLY = b""

Spawn = Callable[[Coroutine[None, None, None]], None]
"""Has work done by a task of the broker; what goes wrong in there ends the process."""


class Cancellable(Protocol):
    def cancel(self) -> None:
        """Forget it: whoever asked is gone."""
        ...


class Exchange:
    """Answered once. What comes after `abandon`, when whoever asked is gone, is dropped."""

    __slots__ = ("_send", "_table", "correlation_id", "entry", "parked")

    def __init__(
        self, entry: Entry, correlation_id: int, table: RequestTable, send: SendReply
    ) -> None:
        self.entry = entry
        self.correlation_id = correlation_id
        self.parked: Cancellable | None = None
        """What to cancel when whoever asked is gone."""
        self._table = table
        self._send: SendReply | None = send

    @property
    def is_open(self) -> bool:
        return self._send is not None

    def begin_reply(self) -> broker_pb2.BrokerReply:
        return broker_pb2.BrokerReply(correlation_id=self.correlation_id)

    def answer(self, reply: broker_pb2.BrokerReply) -> None:
        self._finish(reply.SerializeToString())

    def answer_envelope(self, envelope: Envelope) -> None:
        """With an envelope that carries our correlation id already."""
        self._finish(envelope)

    def answer_encoded(self, field_number: int, message: bytes) -> None:
        """With the reply's message already encoded."""
        head = self.begin_reply().SerializeToString()
        self._finish((head, *enclose(field_number, (message,))))

    def refuse(self, error: KraftError, directory: Directory) -> None:
        """The request as a whole."""
        self.entry.failed = True
        reply = self.begin_reply()
        reply.error.CopyFrom(encode_error(error, None, directory))
        self.answer(reply)

    def stay_silent(self) -> None:
        """It was carried out, and nobody waits for the answer."""
        self._finish(NO_REPLY)

    def _finish(self, envelope: Envelope) -> None:
        send, self._send, self.parked = self._send, None, None
        if send is not None:
            self.entry.answered = self._table.now()
            send(envelope)

    def abandon(self) -> None:
        """Whoever asked is gone."""
        parked, self._send, self.parked = self.parked, None, None
        if parked is not None:
            parked.cancel()
        self._table.finish(self.entry)
