import asyncio

from chaos.toxiproxy.buffers import Buffer, Chunk
from tests.loops import run


def test_first_waits_for_a_chunk_or_the_end() -> None:
    async def story() -> None:
        buffer = Buffer()
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(buffer.first())
            await asyncio.sleep(0)
            buffer.put(Chunk(b"a", 0.0))
        assert waiting.result() == Chunk(b"a", 0.0) == buffer.pop()
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(buffer.first())
            await asyncio.sleep(0)
            buffer.close()
        assert waiting.result() is None

    run(story())


def test_room_comes_with_a_pop() -> None:
    async def story() -> None:
        buffer = Buffer(chunks_max=1)
        buffer.put(Chunk(b"a", 0.0))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(buffer.room())
            await asyncio.sleep(0)
            assert buffer.is_full
            assert not waiting.done()
            buffer.pop()

    run(story())


def test_a_reader_that_is_cancelled_does_not_silence_the_next() -> None:
    async def story() -> None:
        buffer, told = Buffer(), []
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(buffer.first())
            await asyncio.sleep(0)
            waiting.cancel()
            buffer.on_change = lambda: told.append(len(buffer))
        buffer.put(Chunk(b"a", 0.0))
        assert told == [1]

    run(story())


def test_pouring_keeps_the_order_and_the_end() -> None:
    first, second = Buffer(), Buffer()
    second.put(Chunk(b"a", 0.0))
    first.put(Chunk(b"b", 0.0))
    first.close()
    first.put(Chunk(b"too late", 0.0))
    first.pour_into(second)
    assert [second.pop().data, second.pop().data] == [b"a", b"b"]
    assert second.is_closed
    assert second.head() is None
