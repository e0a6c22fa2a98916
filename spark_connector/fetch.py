"""A range of offsets as it comes from brokers: a stream of messages from whoever leads, and after a
failure another one, on from where it was.
"""

import threading
import time
from collections.abc import Callable, Iterator

import grpc

from kraftlog.errors import KraftError, NetworkError
from kraftlog.rpc import broker_pb2
from spark_connector.client import Cluster, RangeCall
from spark_connector.loss import TopicGone
from spark_connector.offsets import Range

LOOKS_FOR_LATE = 4
"""So often in the time that a message may take it is looked whether one is late."""
LOOK_SECONDS_MAX = 1.0


class RangeFetch:
    """The batches of a range; the first and the last may reach beyond it.

    An error comes through if it would not go away, or if nothing came for `patience_ms`. The time
    in which the reader is busy with what came does not count. Any thread may `cancel`.
    """

    def __init__(
        self, source: Cluster, wanted: Range, *, message_bytes: int, patience_ms: int
    ) -> None:
        self._source = source
        self._wanted = wanted
        self._message_bytes = message_bytes
        self._patience = patience_ms / 1000
        self._position = wanted.start
        self._deadline = 0.0
        self._call: RangeCall | None = None
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Nothing more is wanted; who waits for a message gets none."""
        self._cancelled.set()
        if self._call is not None:
            self._call.cancel()

    def __iter__(self) -> Iterator[bytes]:
        failures = 0
        self._renew()
        while self._position < self._wanted.end and not self._cancelled.is_set():
            try:
                for reply in self._stream():
                    failures = 0
                    self._position = reply.next_offset
                    yield reply.records
                    self._renew()
                self._check_end()
            except TopicGone:
                raise
            except KraftError as error:
                if self._cancelled.is_set():
                    return
                failures += 1
                self._source.pause(error, failures, self._deadline)

    def _renew(self) -> None:
        self._deadline = time.monotonic() + self._patience

    def _check_end(self) -> None:
        if self._position < self._wanted.end:
            raise NetworkError(
                f"{self._wanted.place} ended at {self._position}, not at {self._wanted.end}"
            )

    def _stream(self) -> Iterator[broker_pb2.FetchRangeReply]:
        wanted = self._wanted._replace(start=self._position)
        node, topic_id = self._source.leader_of(wanted)
        request = self._source.range_request(wanted, topic_id, self._message_bytes)
        self._call = call = self._source.open_range(node.address, request)
        if self._cancelled.is_set():
            call.cancel()
        watch = _Watch(call.cancel, self._patience)
        messages = iter(call)
        try:
            while True:
                watch.until = min(self._deadline, time.monotonic() + self._source.silence)
                message = next(messages, None)
                watch.until = None
                if message is None:
                    return
                reply = broker_pb2.FetchRangeReply.FromString(message)
                self._source.check_reply(reply, wanted.place, node)
                yield reply
        except grpc.RpcError as error:
            what = "nothing came for too long" if watch.is_late else str(error)
            raise NetworkError(
                f"no range of {wanted.place} from {node.address}: {what}", node=node.address
            ) from None
        finally:
            watch.end()
            call.cancel()


class _Watch:
    """Calls off what takes longer than `until`, which its owner sets while it waits."""

    def __init__(self, call_off: Callable[[], object], patience: float) -> None:
        self.until: float | None = None
        self.is_late = False
        self._call_off = call_off
        self._pause = min(patience / LOOKS_FOR_LATE, LOOK_SECONDS_MAX)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fetch watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._pause):
            until = self.until
            if until is not None and time.monotonic() >= until:
                self.is_late = True
                self._call_off()
                return

    def end(self) -> None:
        self._ended.set()
