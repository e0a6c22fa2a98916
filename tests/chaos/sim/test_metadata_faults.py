"""What goes wrong with brokers alone."""

import pytest

from chaos.sim.metadata_faults import BrokerFaults
from chaos.sim.options import BROKER_RANGES, Options
from chaos.sim.runner import run_seed
from tests.chaos.sim.governed import start_scripted


@pytest.mark.parametrize("fault", BROKER_RANGES)
def test_each_fault_by_itself_is_survived(fault: str) -> None:
    options = Options(
        kind="metadata",
        voters=1,
        brokers=3,
        safety_ms=3_000,
        faults={fault: BROKER_RANGES[fault][1]},
    )
    assert run_seed(3, options).failure == ""


def test_without_faults_nothing_happens() -> None:
    cluster = start_scripted()
    BrokerFaults(cluster).begin()
    assert all(node.is_up for node in cluster.brokers())
