import asyncio
import logging
import threading

import pytest

from kraftlog.delivery import Deliveries, Delivery, DeliveryFuture, FlushResult, Run, wait_done
from kraftlog.errors import InvalidRecord, KraftError
from kraftlog.records import RecordMetadata


def delivery(records: int = 3) -> Delivery:
    made = Delivery("t", 1)
    made.timestamps = [100 + number for number in range(records)]
    return made


def test_each_record_has_its_own_offset() -> None:
    promise = delivery()
    futures = [DeliveryFuture(promise, index) for index in range(3)]
    assert not futures[0].done()
    assert "pending" in repr(futures[0])
    promise.keep(40)
    assert [future.result() for future in futures] == [
        RecordMetadata("t", 1, 40, 100),
        RecordMetadata("t", 1, 41, 101),
        RecordMetadata("t", 1, 42, 102),
    ]
    assert futures[0].exception() is None
    assert "offset=40" in repr(futures[0])


def test_the_brokers_time_stands_for_all() -> None:
    promise = delivery()
    promise.keep(0, append_time=999)
    assert DeliveryFuture(promise, 2).result().timestamp == 999


def test_nobody_told_the_offset() -> None:
    promise = delivery()
    promise.keep(-1)
    assert DeliveryFuture(promise, 2).result().offset == -1


def test_an_error_is_raised_to_each() -> None:
    promise = delivery()
    promise.fail(InvalidRecord("no"))
    with pytest.raises(InvalidRecord):
        DeliveryFuture(promise, 1).result()
    assert isinstance(DeliveryFuture(promise, 2).exception(), InvalidRecord)
    assert promise.failed_records == 3


def test_a_promise_is_kept_once() -> None:
    promise = delivery()
    promise.fail(InvalidRecord("expired"))
    promise.keep(5)
    assert isinstance(DeliveryFuture(promise, 0).exception(), InvalidRecord)


def test_a_batch_that_was_split_has_two_fates() -> None:
    promise = delivery()
    promise.settle(0, 1, base_offset=7)
    assert not DeliveryFuture(promise, 0).done()
    promise.settle(1, 3, error=InvalidRecord("no"))
    assert promise.is_done
    assert DeliveryFuture(promise, 0).result().offset == 7
    assert isinstance(DeliveryFuture(promise, 2).exception(), InvalidRecord)
    assert promise.failed_records == 2


def test_a_wait_ends_with_its_timeout() -> None:
    future = DeliveryFuture(delivery(), 0)
    with pytest.raises(TimeoutError, match="no answer within 1ms"):
        future.result("1ms")


def test_a_wait_ends_when_another_thread_keeps_the_promise() -> None:
    promise = delivery()
    thread = threading.Timer(0.01, lambda: promise.keep(1))
    thread.start()
    assert DeliveryFuture(promise, 0).result("10s").offset == 1
    thread.join()


# R32: a callback, with the metadata or the error
def test_callbacks_come_once_and_a_bad_one_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    promise = delivery()
    heard: list[tuple[RecordMetadata | None, KraftError | None]] = []
    future = DeliveryFuture(promise, 1)

    def bad(_: DeliveryFuture) -> None:
        raise ZeroDivisionError

    future.add_done_callback(bad)
    future.report_to(lambda metadata, error: heard.append((metadata, error)))
    future.add_done_callback(lambda done: heard.append((done.result(), None)))
    with caplog.at_level(logging.ERROR):
        promise.keep(3)
    assert heard == [(RecordMetadata("t", 1, 4, 101), None)] * 2
    assert "ZeroDivisionError" in caplog.text
    future.report_to(lambda metadata, error: heard.append((metadata, error)))
    assert len(heard) == 3, "a late one is called at once"


def test_a_callback_hears_of_errors() -> None:
    promise, error = delivery(), InvalidRecord("no")
    heard: list[tuple[RecordMetadata | None, KraftError | None]] = []
    DeliveryFuture(promise, 1).report_to(
        lambda metadata, failure: heard.append((metadata, failure))
    )
    promise.fail(error)
    assert heard == [(None, error)]


def test_a_future_can_be_awaited() -> None:
    promise = delivery()

    async def wait() -> list[int]:
        thread = threading.Timer(0.01, lambda: promise.keep(9))
        thread.start()
        first = await DeliveryFuture(promise, 0)
        second = await DeliveryFuture(promise, 1)
        await wait_done(promise)
        thread.join()
        return [first.offset, second.offset]

    assert asyncio.run(wait()) == [9, 10]


def test_many_futures_are_one_sequence_in_the_order_of_the_input() -> None:
    one, two = delivery(4), delivery(2)
    many = Deliveries(
        5, [([0, 2, 4], [Run(one, 1, 2), Run(two, 0, 1)]), ([1, 3], [Run(two, 0, 2)])]
    )
    one.keep(10)
    two.keep(50)
    assert [future.result().offset for future in many] == [11, 50, 12, 51, 50]
    assert many[-1].result().offset == 50
    assert [future.result().offset for future in many[1:3]] == [50, 12]
    assert [metadata.offset for metadata in many.results("1s")] == [11, 50, 12, 51, 50]
    assert len(many) == 5
    with pytest.raises(IndexError):
        many[5]


def test_results_of_many_wait_for_all() -> None:
    many = Deliveries(1, [([0], [Run(delivery(1), 0, 1)])])
    with pytest.raises(TimeoutError):
        many.results("1ms")


def test_a_flush_that_is_not_complete_can_be_an_error() -> None:
    FlushResult(0, 1).raise_if_incomplete()
    with pytest.raises(TimeoutError, match="3 records"):
        FlushResult(3, 0).raise_if_incomplete()
