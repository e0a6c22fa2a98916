"""The asynchronous clients: the same names and arguments as the synchronous ones, awaitable."""

from kraftlog.aio.admin import AsyncAdmin
from kraftlog.aio.consumer import AsyncConsumer
from kraftlog.aio.producer import AsyncProducer

__all__ = ["AsyncAdmin", "AsyncConsumer", "AsyncProducer"]
