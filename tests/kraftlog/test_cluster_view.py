from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.cluster_view import (
    NO_LEADER,
    NO_LEADERSHIP,
    ClusterView,
    Hint,
    Metadata,
    Node,
    PartitionView,
    TopicView,
)
from kraftlog.errors import LeaderNotAvailable, TopicExists, UnknownTopicOrPartition
from kraftlog.types import TopicPartition

NODES = tuple(Node(number, "host", 9000 + number) for number in (1, 2, 3))
T0 = TopicPartition("t", 0)


def topic(*leaders: tuple[int, int], topic_id: bytes = b"i" * 16) -> TopicView:
    partitions = [
        PartitionView(number, leader, epoch) for number, (leader, epoch) in enumerate(leaders)
    ]
    return TopicView("t", topic_id, tuple(partitions))


def view_of(*topics: TopicView, offset: int = 10) -> ClusterView:
    view = ClusterView()
    view.learn(Metadata(offset=offset, brokers=NODES, topics=topics))
    return view


def test_what_is_not_known() -> None:
    view = view_of(topic((1, 0)))
    with pytest.raises(UnknownTopicOrPartition):
        view.topic("u")
    with pytest.raises(UnknownTopicOrPartition, match="has 1 partitions"):
        view.partition(TopicPartition("t", 1))
    assert view.leader_id("u", 0) == view.leader_id("t", 1) == NO_LEADER
    assert view.name_of(b"i" * 16) == "t"
    assert view.name_of(b"j" * 16) is None


def test_a_leader_has_an_address() -> None:
    view = view_of(topic((2, 5), (NO_LEADER, 6), (9, 1)))
    assert view.leader(T0) == (NODES[1], 5)
    assert view.leader_id("t", 0) == 2
    for without in (1, 2):  # none elected; one that is not up
        with pytest.raises(LeaderNotAvailable):
            view.leader(TopicPartition("t", without))
        assert view.leader_id("t", without) == NO_LEADER
    assert view.topics["t"].available == (0, 2)
    assert NODES[0].address == "host:9001"
    assert Node(1, "::1", 9).address == "[::1]:9"


def test_another_leader_or_a_later_epoch_is_another_leadership() -> None:
    view = view_of(topic((2, 5)))
    assert not view.has_moved("t", 0, (2, 5))
    assert view.has_moved("t", 0, (1, 4))
    assert view.has_moved("t", 0, (2, 4))
    view.learn(Metadata(offset=11, brokers=NODES, topics=(topic((NO_LEADER, 6)),)))
    assert not view.has_moved("t", 0, (2, 5)), "to nobody yet"
    assert not view.has_moved("u", 0, NO_LEADERSHIP)


# R17: whichever broker tells what in whichever order, a leader epoch that was seen never goes back.
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(1, 3), st.booleans()),
        max_size=20,
    )
)
def test_old_news_change_nothing(news: list[tuple[int, int, int, bool]]) -> None:
    view = view_of(topic((1, 0)))
    newest = 0
    for offset, epoch, leader, is_hint in news:
        # Two brokers never differ on who leads an epoch.
        leader = 1 + (epoch + 1) % 3 if epoch else 1  # noqa: PLW2901
        if is_hint:
            view.learn_leader(T0, Hint(epoch, NODES[leader - 1]))
        else:
            view.learn(Metadata(offset=offset, brokers=NODES, topics=(topic((leader, epoch)),)))
        newest = max(newest, epoch)
        assert view.partition(T0).leader_epoch == newest


def test_a_hint_is_taken_over_at_once() -> None:
    view = view_of(topic((1, 4), (1, 4)))
    elsewhere = Node(7, "new", 1)
    assert view.learn_leader(T0, Hint(5, elsewhere))
    assert view.leader(T0) == (elsewhere, 5)
    assert view.leader(TopicPartition("t", 1)) == (NODES[0], 4)
    assert not view.learn_leader(T0, Hint(5, elsewhere))
    assert not view.learn_leader(T0, Hint(4, NODES[0]))
    assert not view.learn_leader(T0, Hint(6, None))
    assert not view.learn_leader(TopicPartition("u", 0), Hint(6, elsewhere))
    assert not view.learn_leader(TopicPartition("t", 9), Hint(6, elsewhere))


def test_partitions_do_not_become_fewer() -> None:
    view = view_of(topic((1, 0), (1, 0)))
    view.learn(Metadata(offset=3, brokers=NODES, topics=(topic((2, 1)),)))
    assert [p.leader_id for p in view.topics["t"].partitions] == [2, 1]


def test_a_topic_made_again_replaces_the_old_one() -> None:
    view = view_of(topic((1, 7), (1, 7)))
    again = topic((2, 0), topic_id=b"j" * 16)
    view.learn(Metadata(offset=9, brokers=NODES, topics=(again,)))
    assert view.topics["t"].topic_id == b"i" * 16, "told by a broker that is behind"
    view.learn(Metadata(offset=11, brokers=NODES, topics=(again,)))
    assert view.topics["t"] == again
    assert view.name_of(b"i" * 16) is None


def test_a_topic_that_is_gone() -> None:
    view = view_of(topic((1, 0)))
    gone = {"t": UnknownTopicOrPartition("gone")}
    view.learn(Metadata(offset=9, brokers=NODES, refused=gone))
    assert "t" in view.topics, "told by a broker that is behind"
    view.learn(Metadata(offset=11, brokers=NODES, refused=gone))
    with pytest.raises(UnknownTopicOrPartition, match="gone"):
        view.topic("t")
    view.learn(Metadata(offset=12, brokers=NODES, topics=(topic((1, 0)),)))
    assert view.topic("t").name == "t"


def test_what_an_answer_about_all_topics_does_not_name_is_gone() -> None:
    view = view_of(topic((1, 0)))
    told = Metadata(offset=9, brokers=NODES, is_complete=True)
    view.learn(told)
    assert "t" in view.topics, "told by a broker that is behind"
    view.learn(replace(told, offset=11))
    with pytest.raises(UnknownTopicOrPartition, match="no topic or partition t"):
        view.topic("t")
    assert view.name_of(b"i" * 16) is None


def test_why_a_topic_is_refused() -> None:
    view = view_of()
    view.learn(Metadata(offset=11, brokers=NODES, refused={"t": TopicExists("odd")}))
    with pytest.raises(TopicExists):
        view.topic("t")


def test_brokers_and_controllers_are_those_of_the_newest_answer() -> None:
    view = view_of()
    controllers = (Node(101, "c", 1), Node(102, "c", 2))
    told = Metadata(offset=20, cluster_id=b"c" * 16, brokers=NODES[:2], controllers=controllers)
    view.learn(replace(told, controller_id=102))
    view.learn(Metadata(offset=15, brokers=NODES))
    assert set(view.brokers) == {1, 2}
    assert view.controller_id == 102
    assert view.cluster_id == b"c" * 16
    view.learn_controller(Node(103, "c", 3))
    assert (view.controller_id, set(view.controllers)) == (103, {101, 102, 103})
