from hypothesis import given
from hypothesis import strategies as st

from kraftlog.types import Uuid
from metadata_log.places import NO_PLACES, Agenda, Place, Places, bits
from tests.metadata_log.clusters import uuid

places = st.builds(
    Place, st.integers(1, 3).map(lambda number: uuid("t", number)), st.integers(0, 130)
)
sets = st.sets(places)


@given(st.integers(0, 2**200))
def test_bits_are_the_ones_of_a_number(mask: int) -> None:
    assert list(bits(mask)) == [i for i in range(mask.bit_length()) if mask >> i & 1]


@given(sets, sets)
def test_places_are_a_set(some: set[Place], others: set[Place]) -> None:
    one, other = Places.of(some), Places.of(others)
    assert list(one) == sorted(some)
    assert len(one) == len(some)
    assert all((place in one) == (place in some) for place in some | others)
    assert set(one.common(other)) == some & others
    assert one.topic_ids() == sorted({place.topic_id for place in some})
    assert set(one.of_topics([uuid("t", 1)])) == {p for p in some if p.topic_id == uuid("t", 1)}
    assert (one == other) == (some == others)
    assert hash(one) == hash(Places.of(sorted(some)))


@given(sets, sets)
def test_a_toggle_is_a_symmetric_difference(some: set[Place], others: set[Place]) -> None:
    masks: dict[Uuid, int] = {
        topic_id: Places.of(others).mask(topic_id) for topic_id in Places.of(others).topic_ids()
    }
    toggled = Places.of(some).toggled(masks)
    assert set(toggled) == some ^ others
    assert len(toggled) == len(some ^ others)
    assert toggled.toggled(masks) == Places.of(some)


@given(sets, sets, st.integers(1, 50))
def test_an_agenda_is_worked_off_in_order_and_completely(
    first: set[Place], second: set[Place], step: int
) -> None:
    agenda = Agenda.of(Places.of(first), Places.of(second))
    wanted = sorted(first) + sorted(second - first)
    assert len(agenda) == len(wanted)
    done: list[Place] = []
    while agenda:
        taken, agenda = agenda.take(step)
        assert 0 < len(taken) <= step
        done += taken
    assert done == wanted
    assert agenda.take(step) == ([], Agenda())


def test_no_places() -> None:
    assert len(NO_PLACES) == 0
    assert not list(NO_PLACES)
    assert repr(Places.of([Place(uuid("t", 1), 3)])) == f"Places({uuid('t', 1)}-3)"
