"""etcd, three members with fsync on, driven through its gRPC API without generated stubs.

The binary is `ETCD` of the environment, or `etcd` on the path (Debian: etcd-server).
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import grpc
import grpc.aio

from benchmarks.peers.load import VALUE
from quorum.local import free_port

SECONDS = 60.0

Call = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]


def binary() -> str | None:
    return os.environ.get("ETCD") or shutil.which("etcd")


def version(program: str) -> str:
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return shown.stdout.splitlines()[0].rpartition(" ")[2]


class Etcd:
    """Three members in processes of their own."""

    def __init__(self, program: str, directory: str) -> None:
        self.clients = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        peers = [f"http://127.0.0.1:{free_port()}" for _ in range(3)]
        cluster = ",".join(f"n{number}={url}" for number, url in enumerate(peers))
        self._processes = []
        for number, (client, peer) in enumerate(zip(self.clients, peers, strict=True)):
            arguments = [
                program,
                *("--name", f"n{number}", "--data-dir", f"{directory}/etcd{number}"),
                *("--listen-client-urls", f"http://{client}"),
                *("--advertise-client-urls", f"http://{client}"),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", cluster, "--initial-cluster-state", "new"),
                *("--heartbeat-interval", "100", "--election-timeout", "1000"),
            ]
            with open(f"{directory}/etcd{number}.log", "wb") as log:
                self._processes.append(subprocess.Popen(arguments, stdout=log, stderr=log))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    async def leader(self) -> str:
        """The address of the member that leads; a put elsewhere would be forwarded."""
        async with asyncio.timeout(SECONDS):
            while True:
                leading = [address for address in self.clients if await _leads(address)]
                if leading:
                    return leading[0]
                await asyncio.sleep(0.1)


async def _leads(address: str) -> bool:
    async with grpc.aio.insecure_channel(address) as channel:
        status: Call = channel.unary_unary("/etcdserverpb.Maintenance/Status")
        try:
            reply = dict(_fields(await status(b"", timeout=2)))
        except grpc.aio.AioRpcError:
            return False
    header = dict(_fields(bytes(reply[1]) if isinstance(reply[1], bytes) else b""))
    return reply.get(4, 0) != 0 and reply.get(4) == header.get(2)


def put_on(channel: grpc.aio.Channel, keys: Iterator[int]) -> "Put":
    return Put(channel.unary_unary("/etcdserverpb.KV/Put"), keys)


class Put:
    """One put of a fresh key and 100 bytes."""

    def __init__(self, call: Call, keys: Iterator[int]) -> None:
        self._call = call
        self._keys = keys

    async def __call__(self) -> None:
        key = b"key%010d" % next(self._keys)
        await self._call(b"\x0a" + _sized(key) + b"\x12" + _sized(VALUE), timeout=10)


def _sized(data: bytes) -> bytes:
    return bytes([len(data)]) + data  # all of ours are shorter than 128


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a protobuf message that has only varints and bytes up front."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        value, position = _varint(message, position)
        if tag & 7 == 2:
            yield tag >> 3, message[position : position + value]
            position += value
        elif tag & 7 == 0:
            yield tag >> 3, value
        else:
            return


def _varint(message: Sequence[int], position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position
