from random import Random

from hypothesis import given
from hypothesis import strategies as st

from brokers.cluster import PartitionId
from brokers.reply_order import ReplyOrder, Turn


def partitions(*numbers: int) -> list[PartitionId]:
    return [PartitionId(b"t" * 16, number) for number in numbers]


def test_a_quick_refusal_waits_for_the_request_before_it() -> None:
    order, sent = ReplyOrder(), list[str]()
    first = order.begin(partitions(0))
    second = order.begin(partitions(0))
    order.finish(second, lambda: sent.append("second"))
    assert sent == []
    order.finish(first, lambda: sent.append("first"))
    assert sent == ["first", "second"]
    assert len(order) == 0


def test_requests_about_other_partitions_do_not_wait() -> None:
    order, sent = ReplyOrder(), list[str]()
    slow = order.begin(partitions(0))
    quick = order.begin(partitions(1))
    order.finish(quick, lambda: sent.append("quick"))
    assert sent == ["quick"]
    order.finish(slow, lambda: sent.append("slow"))
    assert sent == ["quick", "slow"]


def test_a_partition_that_is_named_twice_counts_once() -> None:
    order, sent = ReplyOrder(), list[str]()
    order.finish(order.begin(partitions(0, 0)), lambda: sent.append("x"))
    assert sent == ["x"]
    order.finish(order.begin([]), lambda: sent.append("nothing asked"))
    assert len(order) == 0


@given(
    st.lists(st.sets(st.integers(0, 3), max_size=3), max_size=12),
    st.randoms(use_true_random=False),
)
def test_any_order_of_answers_keeps_the_order_per_partition(
    asked: list[set[int]], dice: Random
) -> None:
    order, sent = ReplyOrder(), list[int]()
    turns: list[tuple[int, Turn]] = []
    for number, numbers in enumerate(asked):
        turns.append((number, order.begin(partitions(*numbers))))
    finished: set[int] = set()
    dice.shuffle(turns)
    for number, turn in turns:
        finished.add(number)
        order.finish(turn, lambda number=number: sent.append(number))  # type: ignore[misc]
        # Sent is exactly what is finished and has nothing unsent before it in any partition.
        for each in range(len(asked)):
            ahead = [other for other in range(each) if asked[other] & asked[each]]
            is_due = each in finished and all(other in sent for other in ahead)
            assert (each in sent) == is_due
    assert sorted(sent) == list(range(len(asked)))
    for place, later in enumerate(sent):
        assert not any(
            asked[later] & asked[earlier] and earlier < later for earlier in sent[place:]
        )
    assert len(order) == 0
