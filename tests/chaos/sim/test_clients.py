"""What clients are told, and when that was a lie."""

from collections.abc import Callable

import pytest

from chaos.sim.clients import Ack, Clients, Proposal, Read
from chaos.sim.cluster import Cluster
from kraftlog._check import InvariantViolation
from tests.chaos.sim.clusters import append, elect, followers, run_until, start


class Case:
    def __init__(self) -> None:
        self.cluster: Cluster = start(3)
        self.leader = elect(self.cluster)
        self.clients = Clients(self.cluster)

    def run_until(self, reached: Callable[[], bool]) -> None:
        def judged() -> bool:
            self.clients.judge()
            return reached()

        run_until(self.cluster, judged)

    def told(self, what: Ack | Read, lie: str) -> None:
        self.clients._unjudged.append(what)
        with pytest.raises(InvariantViolation, match=lie):
            self.clients.judge()


@pytest.fixture
def case() -> Case:
    return Case()


def ack(offset: int, *values: bytes, floor: int = 0) -> Ack:
    return Ack(Proposal(values, floor, (1, 1, 1)), offset)


def test_what_is_proposed_is_acknowledged(case: Case) -> None:
    values = case.clients.propose(case.leader, batches=2)
    case.run_until(lambda: case.clients.acked == set(values))
    case.clients.check_end()


def test_clients_ask_by_themselves(case: Case) -> None:
    case.clients.begin()
    reads = case.cluster.sightings
    case.run_until(lambda: len(case.clients.acked) > 20 and reads["linearizable read"] > 5)
    case.clients.end()
    case.run_until(lambda: case.leader.open_operations == 0)
    case.clients.check_end()


def test_an_acknowledged_record_must_be_there(case: Case) -> None:  # M1
    offset = append(case.cluster, case.leader, b"x")
    case.told(ack(offset + 1, b"x"), "M1 acknowledged, not committed there")
    case.told(ack(offset, b"never"), "M1 acknowledged, not committed there")


def test_an_acknowledgement_comes_once_in_order_and_above_what_was_done(case: Case) -> None:  # M1
    first, second = (append(case.cluster, case.leader, value) for value in (b"x", b"y"))
    case.told(ack(first, b"x", floor=first + 1), "M1 below what was done before it")
    case.clients._unjudged.append(ack(second, b"y"))
    case.clients.judge()
    case.told(ack(second, b"y"), "M3 acknowledged twice")
    case.clients.acked.clear()
    case.told(ack(first, b"x"), "M1 acknowledged out of order")


def test_a_read_shows_all_that_was_done_before_it(case: Case) -> None:  # M2
    end = append(case.cluster, case.leader, b"x") + 1
    digest = case.cluster.checker.ledger.digest_at(end)
    assert digest is not None
    case.told(Read("n1", floor=end + 1, end=end, digest=digest), "M2 a read misses")
    case.told(Read("n1", floor=0, end=end, digest=(digest, "not")), "M2 a read of what was not")


def test_a_refused_proposal_leaves_no_trace(case: Case) -> None:  # M4
    other = followers(case.cluster, case.leader)[0]
    values = case.clients.propose(other)
    assert case.cluster.sightings["proposal refused"] == 1
    case.clients.check_end()
    append(case.cluster, case.leader, values[0])
    with pytest.raises(InvariantViolation, match="M4 refused, and yet committed"):
        case.clients.check_end()


def test_a_proposal_is_committed_as_a_whole(case: Case) -> None:  # M10
    append(case.cluster, case.leader, b"x")
    case.clients._unknown.append(Proposal((b"x",), 0, (1, 1, 1)))
    case.clients._unknown.append(Proposal((b"gone",), 0, (1, 1, 1)))
    case.clients.check_end()
    assert case.cluster.sightings["proposal with unknown outcome was committed"] == 1
    assert case.cluster.sightings["proposal with unknown outcome is gone"] == 1
    case.clients._unknown.append(Proposal((b"x", b"gone"), 0, (1, 1, 1)))
    with pytest.raises(InvariantViolation, match="M10 a proposal in part"):
        case.clients.check_end()
