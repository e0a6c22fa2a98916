"""Who leads what, as all nodes say all the time. The observer dials the nodes themselves: what it
sees is not to depend on the edges that a drill cuts.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import grpc

from chaos.history import HistoryWriter
from kraftlog.connection import CHANNEL_OPTIONS
from kraftlog.rpc import broker_pb2, raft_pb2

CONTROLLER_SECONDS = 0.02
BROKER_SECONDS = 0.05
CALL_SECONDS = 0.5


@dataclass(slots=True)
class Reign:
    """One leader of the quorum in one epoch."""

    epoch: int
    leader: str
    seen_at: float
    first_end: int
    """The end of its log when it was first seen; the record that opens its epoch is below."""
    committed_at: float | None = None
    last_seen_at: float = 0.0


@dataclass(frozen=True, slots=True)
class PartitionView:
    leader: int
    epoch: int
    isr: tuple[int, ...]


@dataclass(slots=True)
class View:
    """The newest metadata that any broker showed."""

    offset: int = -1
    brokers: frozenset[int] = frozenset()
    partitions: dict[tuple[str, int], PartitionView] = field(default_factory=dict)


class Watcher:
    """A thread for each node, since one that is paused keeps its observer waiting."""

    def __init__(
        self,
        controllers: Mapping[str, str],
        brokers: Mapping[str, str],
        names: Callable[[int], str],
        history: HistoryWriter,
    ) -> None:
        """`names` gives the name of a node id."""
        self._names = names
        self._history = history
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._reigns: dict[int, Reign] = {}
        self._doubles: list[str] = []
        self._fences: list[tuple[float, frozenset[int]]] = []
        self.view = View()
        self._threads: list[threading.Thread] = []
        for name, address in controllers.items():
            self._add(name, address, self._watch_controller)
        for name, address in brokers.items():
            self._add(name, address, self._watch_broker)

    def _add(self, name: str, address: str, work: Callable[[str, str], None]) -> None:
        thread = threading.Thread(target=work, args=(name, address), daemon=True)
        self._threads.append(thread)

    def add_broker(self, name: str, address: str) -> None:
        """One that came later."""
        self._add(name, address, self._watch_broker)
        self._threads[-1].start()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    # -- what was seen

    @property
    def reigns(self) -> list[Reign]:
        """In the order of their epochs."""
        with self._lock:
            return [self._reigns[epoch] for epoch in sorted(self._reigns)]

    @property
    def doubles(self) -> list[str]:
        """Two leaders of one epoch, in words: never."""
        return list(self._doubles)

    def newest(self) -> Reign | None:
        reigns = self.reigns
        return reigns[-1] if reigns else None

    def controller_after(self, epoch: int) -> Reign | None:
        """The first leader of a later epoch that has committed something."""
        for reign in self.reigns:
            if reign.epoch > epoch and reign.committed_at is not None:
                return reign
        return None

    def leader(self, topic: str, partition: int) -> int:
        """Of a partition, by the newest metadata; -1 if it has none."""
        with self._lock:
            now = self.view.partitions.get((topic, partition))
            return -1 if now is None else now.leader

    def partitions(self, topic: str) -> dict[tuple[str, int], PartitionView]:
        with self._lock:
            return {key: now for key, now in self.view.partitions.items() if key[0] == topic}

    def led_after(self, name: str, epoch: int, moment: float) -> bool:
        """Whether a node still said after a moment that it leads this epoch."""
        return self.last_led(name, epoch) > moment

    def last_led(self, name: str, epoch: int) -> float:
        """The last moment at which a node said that it leads this epoch; 0 if it never did."""
        with self._lock:
            reign = self._reigns.get(epoch)
            return reign.last_seen_at if reign is not None and reign.leader == name else 0.0

    def fenced_at(self, broker: int, since: float) -> float | None:
        """When a broker was first missing from the metadata, after a moment."""
        with self._lock:
            return next((at for at, up in self._fences if at >= since and broker not in up), None)

    def up(self) -> frozenset[int]:
        """The brokers that are not fenced, by the newest metadata."""
        with self._lock:
            return self.view.brokers

    # -- controllers

    def _watch_controller(self, name: str, address: str) -> None:
        with grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
            describe = channel.unary_unary(
                "/kraftlog.rpc.Raft/DescribeQuorum",
                request_serializer=raft_pb2.DescribeQuorumRequest.SerializeToString,
                response_deserializer=raft_pb2.DescribeQuorumReply.FromString,
            )
            while not self._stop.wait(CONTROLLER_SECONDS):
                try:
                    reply = describe(raft_pb2.DescribeQuorumRequest(), timeout=CALL_SECONDS)
                except grpc.RpcError:
                    continue
                if reply.role == "leader":
                    self._saw_leader(name, reply)

    def _saw_leader(self, name: str, reply: raft_pb2.DescribeQuorumReply) -> None:
        now = time.monotonic()
        epoch = reply.header.epoch
        with self._lock:
            reign = self._reigns.get(epoch)
            if reign is None:
                reign = self._reigns[epoch] = Reign(epoch, name, now, reply.end_offset)
                self._history.event("controller", leader=name, epoch=epoch)
            if reign.leader != name:
                self._doubles.append(f"{name} and {reign.leader} both lead epoch {epoch}")
                self._history.event("controller", leader=name, epoch=epoch)
            reign.last_seen_at = now
            if reign.committed_at is None and reply.high_watermark >= reign.first_end:
                reign.committed_at = now
                self._history.event("committed", leader=name, epoch=epoch)

    # -- brokers

    def _watch_broker(self, _: str, address: str) -> None:
        request = broker_pb2.BrokerRequest(metadata=broker_pb2.MetadataRequest(all_topics=True))
        with grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
            call = channel.unary_unary(
                "/kraftlog.rpc.Broker/Call",
                request_serializer=broker_pb2.BrokerRequest.SerializeToString,
                response_deserializer=broker_pb2.BrokerReply.FromString,
            )
            while not self._stop.wait(BROKER_SECONDS):
                try:
                    reply = call(request, timeout=CALL_SECONDS)
                except grpc.RpcError:
                    continue
                if not reply.HasField("error"):
                    self._saw_metadata(reply.metadata)

    def _saw_metadata(self, metadata: broker_pb2.MetadataReply) -> None:
        with self._lock:
            if metadata.offset <= self.view.offset:
                return
            self.view.offset = metadata.offset
            up = frozenset(each.node_id for each in metadata.brokers)
            if up != self.view.brokers:
                self.view.brokers = up
                self._fences.append((time.monotonic(), up))
                self._history.event("brokers", up=sorted(map(self._names, up)))
            for topic in metadata.topics:
                for each in topic.partitions:
                    self._saw_partition(topic.name, each)

    def _saw_partition(self, topic: str, now: broker_pb2.PartitionMetadata) -> None:
        before = self.view.partitions.get((topic, now.partition))
        after = PartitionView(now.leader_id, now.leader_epoch, tuple(now.isr))
        if after == before:
            return
        self.view.partitions[(topic, now.partition)] = after
        is_same_leader = before is not None and before.epoch == after.epoch
        self._history.event(
            "isr" if is_same_leader else "leader",
            topic=topic,
            partition=now.partition,
            leader=self._names(after.leader) if after.leader >= 0 else None,
            epoch=after.epoch,
            isr=[self._names(each) for each in after.isr],
        )
