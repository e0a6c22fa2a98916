from hypothesis import given
from hypothesis import strategies as st

from kraftlog.fetch_session import EPOCH_MAX, FetchSession, Place, Wanted

PLACES: list[Place] = [(b"t", number) for number in range(4)]


def wanted(offset: int = 0) -> Wanted:
    return Wanted("t", offset, 1, None)


class Broker:
    """The other half: what it knows after each request must be what the consumer wants."""

    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = 0
        self.known: dict[Place, Wanted] = {}

    def take(self, session: FetchSession, want: dict[Place, Wanted]) -> None:
        request = session.request(want)
        if request.session_id == 0:
            assert request.epoch == 0
            self.known = dict(request.named)
            self.session_id += 1
            self.epoch = 1
        else:
            assert (request.session_id, request.epoch) == (self.session_id, self.epoch)
            for place in request.forgotten:
                del self.known[place]
            assert all(self.known.get(place) != each for place, each in request.named.items())
            self.known |= request.named
            self.epoch += 1


positions = st.dictionaries(st.sampled_from(PLACES), st.builds(wanted, st.integers(0, 3)))


# R21: fetch sessions, and a client falls back to a full fetch
@given(
    st.lists(st.tuples(positions, st.sampled_from(["answered", "lost", "refused"])), max_size=20)
)
def test_a_broker_always_knows_what_is_wanted(
    steps: list[tuple[dict[Place, Wanted], str]],
) -> None:
    session, broker = FetchSession(), Broker()
    for want, outcome in steps:
        broker.take(session, want)
        assert broker.known == want
        if outcome == "answered":
            session.answered(broker.session_id)
        else:
            session.lost()
        if outcome == "refused":
            session.answered(0)


def test_what_has_not_changed_is_not_said_again() -> None:
    session = FetchSession()
    session.request({PLACES[0]: wanted(0), PLACES[1]: wanted(0)})
    session.answered(5)
    second = session.request({PLACES[0]: wanted(7), PLACES[1]: wanted(0)})
    assert (second.session_id, second.epoch) == (5, 1)
    assert second.named == {PLACES[0]: wanted(7)}
    assert second.forgotten == []
    session.answered(5)
    third = session.request({PLACES[0]: wanted(7)})
    assert (third.epoch, third.named, third.forgotten) == (2, {}, [PLACES[1]])


def test_a_broker_without_room_gives_no_session() -> None:
    session = FetchSession()
    for _ in range(2):
        request = session.request({PLACES[0]: wanted()})
        assert (request.session_id, request.epoch) == (0, 0)
        session.answered(0)


def test_epochs_wrap_to_one() -> None:
    session = FetchSession()
    session.request({})
    session.answered(5)
    session._epoch = EPOCH_MAX
    session.answered(5)
    assert session.request({}).epoch == 1
