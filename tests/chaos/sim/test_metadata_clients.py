"""Administrators and what they were told."""

import pytest

from chaos.sim.metadata_clients import AdminClients, Read
from chaos.sim.metadata_rpc import Reply
from kraftlog._check import InvariantViolation
from tests.chaos.sim.governed import start_scripted, until


def test_what_was_asked_for_is_acknowledged() -> None:
    cluster = start_scripted()
    clients = AdminClients(cluster)
    (key,) = clients.propose(cluster.controllers()[0])

    def told() -> bool:
        clients.judge()
        return key in clients.acked

    until(cluster, told)
    assert len(cluster.metadata.done) == 1
    clients.check_end()


def test_a_read_of_nowhere_is_noticed() -> None:
    cluster = start_scripted()
    clients = AdminClients(cluster)
    clients._unjudged.append(Read(0, Reply(offset=cluster.metadata.end + 100)))
    with pytest.raises(InvariantViolation, match="M2 a read of what was not committed"):
        clients.judge()


def test_a_read_that_misses_something_is_noticed() -> None:
    clients = AdminClients(start_scripted())
    clients._unjudged.append(Read(10, Reply(offset=3)))
    with pytest.raises(InvariantViolation, match="M2 a read misses"):
        clients.judge()
