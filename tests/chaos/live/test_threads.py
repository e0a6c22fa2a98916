import threading

import pytest

from chaos.live.threads import Threads


def test_all_work_until_they_are_told_to_stop() -> None:
    done: list[str] = []

    def work(name: str) -> None:
        threads.over.wait(30)
        done.append(name)

    threads = Threads({"a": lambda: work("a"), "b": lambda: work("b")})
    threads.start()
    assert done == []
    threads.stop()
    assert sorted(done) == ["a", "b"]


def test_one_that_fails_ends_the_others_and_is_told() -> None:
    def fail() -> None:
        raise ValueError("of a thread")

    threads = Threads({"good": lambda: assert_over(threads), "bad": fail})
    threads.start()
    assert threads.over.wait(30)
    with pytest.raises(ValueError, match="of a thread"):
        threads.stop()
    with pytest.raises(ValueError, match="of a thread"):
        threads.check()


def assert_over(threads: Threads) -> None:
    assert threads.over.wait(30)


def test_one_that_hangs_is_left_behind() -> None:
    released = threading.Event()

    def hang() -> None:
        assert released.wait(30)

    threads = Threads({"stuck": hang})
    threads.start()
    threads.abandon(0.01)
    threads.check()
    released.set()
    threads.stop()
