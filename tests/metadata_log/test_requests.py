"""M3: what is remembered of answered requests, and what is forgotten, by the log alone."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import metadata_log.requests as module
from metadata_log.records import RequestDone
from metadata_log.requests import NO_REQUESTS, Requests

answers = st.lists(
    st.builds(
        RequestDone,
        st.sampled_from([b"a", b"b", b"c", b"d", b"e"]),
        st.integers(0, 9),
        st.binary(max_size=2),
    ),
    max_size=30,
)


def remember(done: list[RequestDone]) -> Requests:
    requests = NO_REQUESTS
    for each in done:
        requests = requests.remembered(each)
    return requests


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "REQUESTS_PER_CLIENT_MAX", 4)
        patch.setattr(module, "CLIENTS_MAX", 3)
        yield


@given(answers)
def test_the_last_answers_of_the_last_clients_are_kept(done: list[RequestDone]) -> None:
    model: dict[bytes, list[RequestDone]] = {}
    requests = NO_REQUESTS
    for each in done:
        requests = requests.remembered(each)
        model[each.client_id] = [*model.pop(each.client_id, []), each][-4:]
        if len(model) > 3:
            del model[next(iter(model))]
    assert list(requests) == [each for kept in model.values() for each in kept]
    assert len(requests) == len(model)
    for each in done:
        kept = model.get(each.client_id, [])
        first = next((one for one in kept if one.request_id == each.request_id), None)
        assert requests.find(each.client_id, each.request_id) == first


@given(answers, answers)
def test_written_down_and_read_again_it_forgets_the_same(
    done: list[RequestDone], later: list[RequestDone]
) -> None:
    requests = remember(done)
    again = remember(list(requests))
    assert again == requests
    assert hash(again) == hash(requests)
    for each in later:
        requests, again = requests.remembered(each), again.remembered(each)
    assert again == requests


@given(answers)
def test_nothing_grows_but_what_is_remembered(done: list[RequestDone]) -> None:
    requests = remember(done)
    assert len(requests._by_turn) == len(requests._clients) <= 3
    assert sum(len(client.done) for client in requests._clients.values()) <= 12


def test_a_stranger_is_not_known() -> None:
    assert NO_REQUESTS.find(b"nobody", 1) is None
