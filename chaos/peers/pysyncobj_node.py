"""One process of the peer.

    python -P -m chaos.peers.pysyncobj_node --own A:1 --peers B:2,C:3 --directory D

It keeps PySyncObj's journal in the directory, and listens on its own address for both: the other
nodes' streams, and clients' calls, which are JSON as `chaos.peers.machine` has it. A client may ask
any node: PySyncObj passes commands on to its leader.
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import grpc
from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf, replicated
from pysyncobj.node import Node

from chaos.peers.machine import Answer, Machine
from chaos.peers.transport import METHOD as MESSAGES
from chaos.peers.transport import SERVICE as RAFT
from chaos.peers.transport import GrpcTransport, Owner
from kraftlog.serving import SERVER_OPTIONS

SERVICE = "kraftlog.peer.Metadata"
METHOD = "Call"
PATH = f"/{SERVICE}/{METHOD}"
STATUS = "status"
DIGEST = "digest"
"""The status with a digest of all metadata, which takes its time when there is much."""
THREADS = 64
TICK_SECONDS = 0.05
CALL_SECONDS_MAX = 30.0

_Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

# The command is nowhere, or was overwritten before it was committed.
_SURELY_NOT_DONE = {
    FAIL_REASON.QUEUE_FULL,
    FAIL_REASON.MISSING_LEADER,
    FAIL_REASON.NOT_LEADER,
    FAIL_REASON.REQUEST_DENIED,
    FAIL_REASON.DISCARDED,
}


class Metadata(SyncObj):  # type: ignore[misc]  # it carries no types
    """What is set before SyncObj's own constructor is done is no part of its dumps."""

    def __init__(self, own: str, peers: list[str], conf: SyncObjConf) -> None:
        super().__init__(own, peers, conf, transportClass=self._make_transport)
        self.machine = Machine()

    def _make_transport(self, owner: Owner, own: Node, others: set[Node]) -> GrpcTransport:
        self.transport = GrpcTransport(owner, own, others)
        return self.transport

    @replicated  # type: ignore[untyped-decorator]  # it carries no types
    def change(self, command: bytes) -> bytes:
        return self.machine.apply(command)


class Service:
    """Clients' calls, each on a thread of gRPC's."""

    def __init__(self, metadata: Metadata, own: str) -> None:
        self._metadata = metadata
        self._own = own

    def call(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if request in {STATUS.encode(), DIGEST.encode()}:
            return json.dumps(self._status(digested=request == DIGEST.encode())).encode()
        found: list[tuple[bytes | None, int]] = []
        done = threading.Event()

        def on_done(answer: bytes | None, reason: int) -> None:
            found.append((answer, reason))
            done.set()

        self._metadata.change(request, callback=on_done)
        done.wait(min(context.time_remaining() or CALL_SECONDS_MAX, CALL_SECONDS_MAX))
        return _encode(*(found[0] if found else (None, FAIL_REASON.UNKNOWN_OUTCOME)))

    def _status(self, *, digested: bool) -> Answer:
        leader = self._metadata._getLeader()  # noqa: SLF001 - there is no other way to ask
        machine = self._metadata.machine
        return {
            "own": self._own,
            "leader": None if leader is None else str(leader),
            "term": self._metadata.raftCurrentTerm,
            "offset": machine.image.end_offset,
            "digest": machine.digest() if digested else "",
        }


def _encode(answer: bytes | None, reason: int) -> bytes:
    if reason == FAIL_REASON.SUCCESS and answer is not None:
        return answer
    unknown = reason not in _SURELY_NOT_DONE
    words = {"ok": False, "again": True, "unknown": unknown, "error": f"PySyncObj says {reason}"}
    return json.dumps(words).encode()


def handlers(service: Service, transport: GrpcTransport) -> list[grpc.GenericRpcHandler]:
    call: _Handler = grpc.unary_unary_rpc_method_handler(service.call)
    messages: _Handler = grpc.stream_stream_rpc_method_handler(transport.receive)
    return [
        grpc.method_handlers_generic_handler(SERVICE, {METHOD: call}),
        grpc.method_handlers_generic_handler(RAFT, {MESSAGES: messages}),
    ]


def configuration(directory: str) -> SyncObjConf:
    """Its defaults, but for waiting: with batches a commit takes 100 ms, and a fork of a process
    with gRPC's threads is none that works.
    """
    return SyncObjConf(
        autoTick=False,
        appendEntriesUseBatch=False,
        commandsWaitLeader=False,
        journalFile=f"{directory}/journal",
        fullDumpFile=f"{directory}/dump",
        useFork=False,
    )


def run(own: str, peers: list[str], directory: str) -> None:
    """Until SIGTERM."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    metadata = Metadata(own, peers, configuration(directory))
    server = grpc.server(ThreadPoolExecutor(THREADS), options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers(handlers(Service(metadata, own), metadata.transport))
    server.add_insecure_port(own)
    server.start()
    while not stopped.is_set():
        metadata.doTick(TICK_SECONDS)
    server.stop(None).wait()
    metadata.destroy()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.peers.pysyncobj_node")
    parser.add_argument("--own", required=True, metavar="HOST:PORT")
    parser.add_argument("--peers", required=True, metavar="HOST:PORT,...")
    parser.add_argument("--directory", required=True)
    options = parser.parse_args(arguments)
    run(options.own, options.peers.split(","), options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
