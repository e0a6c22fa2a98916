"""Calls over the simulated network."""

from chaos.sim.metadata_rpc import Reply, Request
from kraftlog.rpc import controller_pb2
from tests.chaos.sim.governed import start_scripted, until


def ask() -> Request:
    return Request(describe_cluster=controller_pb2.DescribeClusterRequest())


def test_an_answer_comes_once() -> None:
    cluster = start_scripted()
    replies: list[Reply | None] = []
    cluster.caller(99, "somebody").call(cluster.controllers()[0], ask(), replies.append)
    until(cluster, lambda: bool(replies))
    assert replies[0] is not None
    assert len(replies[0].describe_cluster.brokers) == 3


def test_nobody_answers_for_a_machine_that_is_down() -> None:
    cluster = start_scripted()
    node = cluster.controllers()[0]
    node.die()
    cluster.stays_down.add(node.node_id)
    replies: list[Reply | None] = []
    cluster.caller(99, "somebody").call(node, ask(), replies.append)
    until(cluster, lambda: bool(replies))
    assert replies == [None]
