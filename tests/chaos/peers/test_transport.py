"""One stream each way: in order, opened again after an outage, strangers refused."""

import pickle
import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from chaos.peers.quorums import PeerQuorum
from chaos.peers.transport import HELLO, METHOD, PATH, SENDER, SERVICE, Outgoing
from kraftlog.serving import SERVER_OPTIONS
from tests.waiting import wait_until


class Receiver:
    """The far end of a stream, which can be taken away and put back."""

    def __init__(self, address: str = "127.0.0.1:0") -> None:
        self.got: queue.Queue[bytes] = queue.Queue()
        self._server = grpc.server(ThreadPoolExecutor(4), options=SERVER_OPTIONS)
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(
            self._receive
        )
        generic = grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})
        self._server.add_generic_rpc_handlers([generic])
        self.address = f"127.0.0.1:{self._server.add_insecure_port(address)}"
        self._server.start()

    def _receive(
        self, incoming: Iterator[bytes], _context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        yield HELLO
        for message in incoming:
            self.got.put(message)

    def close(self) -> None:
        self._server.stop(None).wait()


def test_messages_arrive_in_order_also_after_an_outage() -> None:
    told: list[bool] = []
    receiver = Receiver()
    outgoing = Outgoing("own", receiver.address, told.append)
    try:
        for _ in range(2):
            wait_until(lambda: outgoing.send(b"0"), "a stream")
            for number in range(1, 200):
                assert outgoing.send(str(number).encode())
            got = [int(receiver.got.get(timeout=40)) for _ in range(200)]
            assert got == list(range(200))
            receiver.close()
            wait_until(lambda: not outgoing.send(b"lost"), "its end")
            receiver = Receiver(receiver.address)
    finally:
        outgoing.close()
        receiver.close()
    assert told[:3] == [True, False, True]


@pytest.mark.slow
def test_a_stranger_is_refused(quorum: PeerQuorum) -> None:
    with grpc.insecure_channel(quorum.addresses["p1"]) as channel:
        messages: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(PATH)
        call = messages(iter([pickle.dumps({})]), metadata=((SENDER, "nobody"),), timeout=40)
        with pytest.raises(grpc.RpcError, match="'nobody' is none of our nodes"):
            next(call)
