from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from chaos.checkers.linearizability import NEVER, Call, check

Step = tuple[str, int]
"""Write a number to the register, or read it."""


def register(state: int, step: Step) -> int | None:
    action, number = step
    if action == "write":
        return number
    return state if state == number else None


def write(number: int, begin: float, end: float = NEVER) -> Call[Step]:
    return Call(begin, end, ("write", number))


def read(number: int, begin: float, end: float = NEVER) -> Call[Step]:
    return Call(begin, end, ("read", number))


def is_good(*calls: Call[Step]) -> bool:
    return check(calls, 0, register).is_linearizable


def test_nothing_can_be_explained() -> None:
    assert is_good()


def test_a_read_shows_what_was_written_before_it() -> None:
    assert is_good(write(1, 0, 1), read(1, 2, 3))
    assert not is_good(write(1, 0, 1), read(0, 2, 3))


def test_a_call_takes_effect_somewhere_between_its_ends() -> None:
    assert is_good(write(1, 0, 9), read(0, 1, 2), read(1, 3, 4))
    assert not is_good(write(1, 0, 9), read(1, 1, 2), read(0, 3, 4))


def test_what_begins_when_another_ends_is_concurrent_with_it() -> None:
    assert is_good(write(1, 0, 1), read(0, 1, 2))


def test_what_never_ended_happened_once_or_not_at_all() -> None:
    assert is_good(write(1, 0), read(0, 5, 6))
    assert is_good(write(1, 0), read(0, 5, 6), read(1, 7, 8))
    assert not is_good(write(1, 0), read(1, 5, 6), write(2, 7, 8), read(1, 9, 10))


def test_what_never_ended_cannot_have_happened_before_it_began() -> None:
    assert not is_good(read(1, 0, 1), write(1, 2))


def test_the_search_goes_back_on_a_choice_that_led_nowhere() -> None:
    assert is_good(write(1, 0, 9), write(2, 0, 9), read(2, 0, 9), read(1, 10, 11))
    assert is_good(write(1, 0, 9), write(2, 0, 9), read(1, 0, 9), read(2, 10, 11))


def test_the_verdict_names_the_call_before_which_all_orders_end() -> None:
    stale = read(0, 2, 3)
    verdict = check([write(1, 0, 1), stale, read(1, 4, 5)], 0, register)
    assert not verdict.is_linearizable
    assert verdict.stuck_at == stale


def explained(calls: list[Call[Step]]) -> bool:
    """The dumb way: all orders of all that ended and any of the rest."""
    ended = [call for call in calls if call.end != NEVER]
    rest = [call for call in calls if call.end == NEVER]
    chosen = [
        [each for number, each in enumerate(rest) if mask >> number & 1]
        for mask in range(1 << len(rest))
    ]
    return any(
        in_time(order) and replays(order)
        for some in chosen
        for order in permutations([*ended, *some])
    )


def in_time(order: tuple[Call[Step], ...]) -> bool:
    return not any(
        later.end < earlier.begin
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    )


def replays(order: tuple[Call[Step], ...]) -> bool:
    state: int | None = 0
    for call in order:
        if state is not None:
            state = register(state, call.what)
    return state is not None


steps = st.tuples(st.sampled_from(["write", "read"]), st.integers(0, 2))
spans = st.tuples(st.integers(0, 6), st.integers(0, 4) | st.just(NEVER))
calls = st.builds(lambda span, step: Call(span[0], span[0] + span[1], step), spans, steps)


@given(st.lists(calls, max_size=5))
def test_it_says_what_trying_all_orders_says(some: list[Call[Step]]) -> None:
    assert check(some, 0, register).is_linearizable == explained(some)


def test_long_histories_are_no_trouble() -> None:
    many = [write(number, number, number + 1.5) for number in range(1_000)]
    many += [read(number, number + 0.6, number + 2.4) for number in range(1_000)]
    assert is_good(*many)
    assert not is_good(*many, read(-1, 500, 501))
