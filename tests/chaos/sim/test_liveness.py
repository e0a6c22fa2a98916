"""What must get on after the faults."""

import pytest

from chaos.sim.atlas import Atlas
from chaos.sim.clients import Clients
from chaos.sim.cluster import Cluster
from chaos.sim.faults import Faults
from chaos.sim.liveness import ANSWER_MS, Liveness
from chaos.sim.operators import Operators
from kraftlog._check import InvariantViolation
from kraftlog.types import Uuid
from quorum.core.log_view import VotersAt
from quorum.core.messages import ReplicaKey, Voter, VoterSet
from tests.chaos.sim.clusters import append, elect, followers, machine_of, run_for, run_until, start


class Case:
    def __init__(self, voters: int = 3, seed: int = 1) -> None:
        self.cluster: Cluster = start(voters, seed=seed)
        self.leader = elect(self.cluster)
        atlas = Atlas(self.cluster)
        faults = Faults(self.cluster, atlas, Operators(self.cluster, atlas))
        self.clients = Clients(self.cluster)
        self.liveness = Liveness(self.cluster, atlas, faults, self.clients)

    def progress(self) -> None:
        def reached() -> bool:
            self.clients.judge()
            return self.liveness.has_progressed()

        run_until(self.cluster, reached)


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_core_gets_on_and_is_not_disturbed(seed: int) -> None:  # V1, V2, V4
    case = Case(voters=5, seed=seed)
    case.liveness.heal()
    assert len(case.liveness.core) >= 3
    case.progress()
    case.liveness.disturb()
    run_for(case.cluster, 3_000)
    case.liveness.check_end()


def test_cores_are_chosen_in_all_sizes() -> None:
    sizes = set()
    for seed in range(1, 9):
        case = Case(voters=5, seed=seed)
        case.liveness.heal()
        sizes.add(len(case.liveness.core))
    assert 5 in sizes
    assert sizes - {5}
    assert min(sizes) >= 3


def test_the_rest_comes_back_only_if_nobody_could_win_without_it() -> None:  # V1
    case = Case()
    lost = followers(case.cluster, case.leader)[0]
    assert not case.liveness.bring_back(), "there is no rest"
    lost.die()
    case.cluster.stays_down.add(lost.node_id)
    case.liveness._outside = {lost.node_id}
    assert not case.liveness.bring_back(), "the other two are a majority"
    for node in case.liveness.core:
        assert node.core is not None
        unheard = (Voter(ReplicaKey(each, Uuid(bytes(16))), f"n{each}:1") for each in (8, 9))
        both = VoterSet.of([*node.core.voters.voters, *unheard])
        node.core.log.voter_history.append(VotersAt(node.core.log.end_offset, both))
    assert case.liveness.bring_back()
    assert lost.is_up
    assert len(case.liveness.core) == 3


def test_a_new_leader_without_need_is_noticed() -> None:  # V4
    case = Case()
    case.liveness.heal()
    case.progress()
    case.liveness.disturb()
    leader, epoch = case.liveness._leader
    case.liveness._leader = (leader, epoch - 1)
    with pytest.raises(InvariantViolation, match="V4 disturbed"):
        case.liveness.check_end()


def test_a_request_without_an_answer_is_noticed() -> None:  # V3
    case = Case()
    case.liveness.heal()
    case.progress()
    case.liveness.disturb()
    case.leader = case.liveness._leader[0] or case.leader
    long_ago = case.cluster.schedule.now - ANSWER_MS - 1
    case.leader._answers[-1] = (long_ago, lambda *_: None)
    with pytest.raises(InvariantViolation, match="V3 a request without an answer"):
        case.liveness.check_end()


def test_a_client_without_an_answer_is_noticed() -> None:  # V3
    case = Case()
    case.liveness.heal()
    case.progress()
    case.liveness.disturb()
    case.leader = case.liveness._leader[0] or case.leader
    case.leader._reads[-1] = lambda _: None
    with pytest.raises(InvariantViolation, match="V3 a client without an answer"):
        case.liveness.check_end()


def test_states_that_differ_are_noticed() -> None:  # V2
    case = Case()
    append(case.cluster, case.leader, b"v")
    run_for(case.cluster, 1_000)
    machine_of(case.leader).digest += 1
    with pytest.raises(InvariantViolation, match="V2 states differ"):
        case.cluster.checker.check_converged(case.leader)
    ledger = case.cluster.checker.ledger
    other = followers(case.cluster, case.leader)[0]
    ledger.committed[-1] = ledger.committed[-1]._replace(crc=0)
    with pytest.raises(InvariantViolation, match="Q6 lacks a record"):
        case.cluster.checker.check_converged(other)
