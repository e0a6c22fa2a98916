"""Who reads where, and what ends they are told."""

import pytest

from brokers.cluster import PartitionId
from chaos.sim.hunting import hunt
from chaos.sim.mutants import MUTANTS
from chaos.sim.partitions_clients import TOPICS, PartitionClients
from chaos.sim.partitions_readers import KnownEnd, Readers
from kraftlog._check import InvariantViolation
from kraftlog.rpc import broker_pb2
from tests.chaos.sim.governed import start_real, until

PLACE = PartitionId(b"t" * 16, 0)


def test_readers_in_racks_are_sent_to_followers_and_ends_are_told() -> None:
    cluster = start_real()
    PartitionClients(cluster).begin()
    until(cluster, lambda: cluster.sightings["records consumed from a follower"] > 2)
    until(cluster, lambda: cluster.sightings["end told"] > 5)
    cluster.take_apart()


def told(epoch: int, end: int) -> bytes:
    reply = broker_pb2.BrokerReply()
    reply.ends.topics.add(topic_id=PLACE.topic_id).partitions.add(
        partition=0, high_watermark=end, leader_epoch=epoch
    )
    return reply.SerializeToString()


def test_an_end_that_falls_is_noticed() -> None:
    cluster = start_real()
    readers = Readers(cluster, TOPICS)
    readers.hear_end(PLACE, KnownEnd(3, 10), told(3, 10))
    readers.hear_end(PLACE, KnownEnd(3, 10), told(2, 9))  # not believed
    with pytest.raises(InvariantViolation, match="P2 the end that consumers see fell"):
        readers.hear_end(PLACE, KnownEnd(3, 10), told(4, 9))
    cluster.take_apart()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("an end told before it is known to be one", "P2"),
        ("a fenced follower goes on serving", "M8"),
    ],
)
@pytest.mark.slow
def test_what_readers_are_there_for_is_caught(name: str, rule: str) -> None:
    mutant = next(each for each in MUTANTS if each.name == name)
    assert hunt(mutant).rule.startswith(rule)
