"""The link to another broker on which this one fetches what it follows.

A stream of its own, and so a connection of its own. Where the broker listens is looked up when the
stream is opened, so that one which came back at another address is found there.
"""

from collections.abc import Callable, Sequence

from brokers.fetch_wire import decode_fetch_reply, encode_fetch
from brokers.requests import FetchReply, FetchRequest
from brokers.wire import decode_error
from kraftlog.connection import RequestStream
from kraftlog.errors import ThrottledError
from kraftlog.resolver import Resolve
from kraftlog.rpc import broker_pb2, common_pb2

CHANNEL_METHOD = "/kraftlog.rpc.Broker/Channel"
FETCH_KEY = 1

NOWHERE = "127.0.0.1:0"
"""Where nobody listens: a broker that is not in the metadata cannot be reached."""

OnFetchReply = Callable[[FetchReply | None], None]


class BrokerLink:
    """`brokers.replica_fetcher.SourceLink`."""

    def __init__(
        self,
        broker_id: int,
        *,
        endpoint: Callable[[int], str | None],
        resolve: Resolve,
        client_id: str,
    ) -> None:
        self._name = f"broker {broker_id}"
        self._client_id = client_id

        def locate(_name: str) -> str:
            return resolve(endpoint(broker_id) or NOWHERE)

        self._stream: RequestStream[broker_pb2.BrokerReply] = RequestStream(
            self._name,
            CHANNEL_METHOD,
            parse=_parse_replies,
            resolve=locate,
            reopen_when_late=True,
        )

    def send(self, request: FetchRequest, *, timeout_ms: int, on_reply: OnFetchReply) -> None:
        message = encode_fetch(request)

        def encode(correlation_id: int) -> bytes:
            header = common_pb2.RequestHeader(
                api_key=FETCH_KEY, correlation_id=correlation_id, client_id=self._client_id
            )
            return broker_pb2.BrokerRequest(header=header, fetch=message).SerializeToString()

        def take(envelope: broker_pb2.BrokerReply | None) -> None:
            on_reply(None if envelope is None else self._decode(envelope))

        try:
            self._stream.send(encode, timeout_ms=timeout_ms, on_reply=take)
        except ThrottledError:
            on_reply(None)

    def _decode(self, envelope: broker_pb2.BrokerReply) -> FetchReply:
        if envelope.HasField("error"):
            return FetchReply(error=decode_error(envelope.error, self._name))
        return decode_fetch_reply(envelope.fetch, self._name)

    async def run(self) -> None:
        """Keep the stream open until cancelled."""
        await self._stream.run()


def _parse_replies(message: bytes) -> Sequence[broker_pb2.BrokerReply]:
    return broker_pb2.BrokerReplies.FromString(message).replies
