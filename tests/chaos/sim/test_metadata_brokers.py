"""Scripted brokers."""

from chaos.sim.metadata_brokers import log_dir_of, registration
from kraftlog.types import Uuid
from tests.chaos.sim.governed import start_scripted


def test_a_registration_says_whether_the_last_stop_was_clean() -> None:
    node = start_scripted().brokers()[0]
    incarnation = Uuid(bytes(15) + b"i")
    assert not registration(node, incarnation, None).HasField("previous_broker_epoch")
    assert registration(node, incarnation, 7).previous_broker_epoch == 7


def test_another_disk_has_another_id() -> None:
    cluster = start_scripted()
    node = cluster.brokers()[0]
    assert log_dir_of(cluster.replace_disk(node)) != log_dir_of(node)


def test_a_lagging_broker_says_what_it_had_applied() -> None:
    cluster = start_scripted()
    broker = cluster.scripted[2]
    applied = broker.applied_offset
    cluster.let_lag(cluster.brokers()[0], cluster.schedule.now + 1_000)
    assert broker.applied_offset == applied > 0
