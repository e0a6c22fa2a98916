"""A cluster to which bad input is sent, all its listeners, and what it must still be afterwards."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.toxiproxy.wrapper import ToxiServer
from kraftlog.local import LocalCluster
from kraftlog.rpc import broker_pb2
from kraftlog.types import Uuid
from tests.integration.raw import RawClient
from tests.waiting import wait_until

TOPIC = PROXY = "steady"
RECORDS = [b"a", b"b", b"c"]
GROWTH_BYTES_MAX = 96 << 20
"""Of one process by one kind of nonsense: buffers and caches, and nothing that stays."""
DESCRIPTORS_MORE = 4


@dataclass(frozen=True)
class Listener:
    address: str
    pid: int


@dataclass(frozen=True)
class Usage:
    resident_bytes: int
    descriptors: int


@dataclass(frozen=True)
class Victim:
    cluster: LocalCluster
    raw: RawClient
    toxiproxy: ToxiServer

    @property
    def listeners(self) -> Mapping[str, Listener]:
        """Everything here that listens."""
        found: dict[str, Listener] = {}
        for name in self.cluster.nodes:
            pid = self.cluster.pid(name)
            found[name] = Listener(self.cluster.address(name), pid)
            found[f"{name} metrics"] = Listener(self.cluster.metrics_address(name) or "", pid)
        assert self.toxiproxy.pid is not None
        found["toxiproxy"] = Listener(self.toxiproxy.address, self.toxiproxy.pid)
        return found

    def state(self) -> object:
        """What the cluster knows and holds, as every broker shows it."""
        request = broker_pb2.BrokerRequest(metadata=broker_pb2.MetadataRequest(all_topics=True))
        known = [self.raw.broker(name, request).metadata for name in self.cluster.brokers]
        topics = [
            [topic.SerializeToString() for topic in each.topics if topic.name == TOPIC]
            for each in known
        ]
        up = [sorted(node.node_id for node in each.brokers) for each in known]
        leader = self.raw.leads_and_holds(TOPIC, RECORDS)
        return topics, up, leader, self.toxiproxy.toxics(PROXY)

    def usage(self) -> dict[int, Usage]:
        return {each.pid: usage_of(each.pid) for each in self.listeners.values()}

    def expect_no_more_than(self, before: Mapping[int, Usage]) -> None:
        """Memory is bounded, and what was opened for strangers is closed."""
        for pid, then in before.items():

            def is_small(pid: int = pid, then: Usage = then) -> bool:
                return usage_of(pid).descriptors <= then.descriptors + DESCRIPTORS_MORE

            wait_until(is_small, f"process {pid} closes what it opened")
            assert usage_of(pid).resident_bytes <= then.resident_bytes + GROWTH_BYTES_MAX


def usage_of(pid: int) -> Usage:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Usage(pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{pid}/fd")))


@contextmanager
def open_victim() -> Iterator[Victim]:
    toxiproxy = ToxiServer.start("embedded", seed=1)
    try:
        with LocalCluster(1, 3, metrics=True) as cluster, RawClient(cluster) as raw:
            raw.create(TOPIC)
            raw.insist(TOPIC, RECORDS)
            toxiproxy.create(PROXY, cluster.address("b1"))
            yield Victim(cluster, raw, toxiproxy)
    finally:
        toxiproxy.close()


def cluster_id(victim: Victim) -> bytes:
    return Uuid.parse(victim.cluster.cluster_id).raw
