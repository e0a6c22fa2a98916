import asyncio
from collections.abc import Sequence

from brokers import auto_topics
from brokers.auto_topics import Created, TopicCreator
from kraftlog.errors import (
    InvalidTopic,
    KraftError,
    NotController,
    ThrottledError,
    TopicExists,
)
from tests.loops import run, until


class Controller:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.errors: dict[str, KraftError] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_there = True
        self.waited: list[int] = []

    async def create(self, names: Sequence[str]) -> Created:
        self.asked.append(list(names))
        await self.gate.wait()
        if not self.is_there:
            raise NotController("not me")
        return Created(77, {name: self.errors[name] for name in names if name in self.errors})

    async def wait_applied(self, offset: int) -> None:
        self.waited.append(offset)

    def creator(self) -> TopicCreator:
        return TopicCreator(self.create, self.wait_applied)


def test_topics_are_created_and_known_when_it_returns() -> None:  # R22
    async def story() -> None:
        controller = Controller()
        assert await controller.creator().create(["a", "b", "a"]) == {}
        assert controller.asked == [["a", "b"]]
        assert controller.waited == [77]

    run(story())


def test_what_could_not_be_created_says_why() -> None:
    async def story() -> None:
        controller = Controller()
        controller.errors = {"a b": InvalidTopic("no"), "old": TopicExists("there")}
        refused = await controller.creator().create(["a b", "new", "old"])
        assert list(refused) == ["a b"]  # one that exists is as good as one that was created
        assert isinstance(refused["a b"], InvalidTopic)

    run(story())


def test_a_topic_that_is_being_created_is_not_asked_for_again() -> None:
    async def story() -> None:
        controller = Controller()
        controller.gate.clear()
        creator = controller.creator()
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(creator.create(["a"]))
            await until(lambda: bool(controller.asked), "the request")
            second = tasks.create_task(creator.create(["a", "b"]))
            await until(lambda: len(controller.asked) == 2, "the second request")
            controller.gate.set()
        assert controller.asked == [["a"], ["b"]]
        assert first.result() == second.result() == {}
        assert await creator.create(["a"]) == {}
        assert len(controller.asked) == 3

    run(story())


def test_without_a_controller_everybody_is_told() -> None:
    async def story() -> None:
        controller = Controller()
        controller.is_there = False
        refused = await controller.creator().create(["a", "b"])
        assert {type(error) for error in refused.values()} == {NotController}

    run(story())


def test_wishes_are_bounded() -> None:
    async def story() -> None:
        controller = Controller()
        names = [str(number) for number in range(auto_topics.CREATING_MAX + 1)]
        refused = await controller.creator().create(names)
        assert {type(error) for error in refused.values()} == {ThrottledError}
        assert controller.asked == []

    run(story())
