import logging

import pytest

from brokers.requests_table import RequestTable
from kraftlog.apis import Api
from kraftlog.metrics import Registry

PRODUCE = Api("produce", 0)
FETCH = Api("fetch", 1)


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def spend(table: RequestTable, watch: Watch, api: Api, *stages: float, allowed: float = 0) -> None:
    """One request with so many seconds in each stage."""
    arrived = watch.seconds
    queue, local, parked, send = stages
    watch.seconds += queue
    entry = table.begin(api, arrived)
    entry.client_id, entry.correlation_id, entry.allowed_wait = "someone", 42, allowed
    watch.seconds += local
    entry.returned = watch.seconds
    watch.seconds += parked
    entry.answered = watch.seconds
    watch.seconds += send
    table.finish(entry)
    table.finish(entry)  # once is enough


def test_each_stage_is_timed_and_counted() -> None:  # R16
    watch, registry = Watch(), Registry()
    table = RequestTable(1_000, watch)
    table.register(registry)
    spend(table, watch, PRODUCE, 1, 2, 4, 8)
    spend(table, watch, PRODUCE, 1, 0, 0, 0)
    waiting = table.begin(FETCH, watch.seconds)
    text = registry.text()
    assert 'kraftlog_requests_total{api="produce"} 2\n' in text
    assert 'kraftlog_requests_open{api="fetch"} 1\n' in text
    assert 'kraftlog_request_seconds_total{api="produce",stage="queue"} 2\n' in text
    assert 'kraftlog_request_seconds_total{api="produce",stage="local"} 2\n' in text
    assert 'kraftlog_request_seconds_total{api="produce",stage="parked"} 4\n' in text
    assert 'kraftlog_request_seconds_total{api="produce",stage="send"} 8\n' in text
    assert table.open == 1
    waiting.failed = True
    table.finish(waiting)
    assert table.open == 0
    assert 'kraftlog_request_errors_total{api="fetch"} 1\n' in registry.text()


def test_an_answer_before_the_handler_returns_is_local_time() -> None:
    watch = Watch()
    table = RequestTable(1_000, watch)
    entry = table.begin(PRODUCE, watch.seconds)
    watch.seconds += 3
    entry.answered = watch.seconds
    watch.seconds += 5
    entry.returned = watch.seconds  # the handler went on after it had answered
    assert entry.stages(watch.seconds) == (0, 3, 0, 5)


def test_a_slow_request_is_named_with_where_its_time_went(
    caplog: pytest.LogCaptureFixture,
) -> None:  # R16
    watch = Watch()
    table = RequestTable(1_000, watch)
    with caplog.at_level(logging.WARNING):
        spend(table, watch, PRODUCE, 0.25, 0.5, 2, 0.125)
        spend(table, watch, FETCH, 0, 0, 30, 0, allowed=30)  # it asked to wait so long
        spend(table, watch, PRODUCE, 0, 0.5, 0, 0)
    [record] = caplog.records
    assert record.getMessage() == (
        "slow produce of client 'someone', correlation id 42: 2875 ms"
        " (queue 250, local 500, parked 2000, send 125)"
    )


def test_many_slow_requests_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    table = RequestTable(0, watch)
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            spend(table, watch, PRODUCE, 0, 0.01, 0, 0)
        watch.seconds += 5
        spend(table, watch, PRODUCE, 0, 0.01, 0, 0)
    first, second = [record.getMessage() for record in caplog.records]
    assert "more since" not in first
    assert second.endswith("; 49 more since the last such line")
