import asyncio

import pytest

from kraftlog.aio import AsyncAdmin
from kraftlog.errors import InvalidRequest, NotYetSupported
from kraftlog.types import TopicPartition
from tests.kraftlog.test_admin import create
from tests.kraftlog.test_consumer import fill
from tests.kraftlog.toy_cluster import ToyCluster
from tests.kraftlog.toy_controller import ToyQuorum

T0 = TopicPartition("t", 0)


def test_the_same_calls_awaited(toys: ToyCluster) -> None:
    fill(toys, T0, 5)

    async def work() -> None:
        with ToyQuorum() as quorum:
            quorum.answers["create_topics"] = create
            async with AsyncAdmin(
                toys.bootstrap, bootstrap_controllers=quorum.addresses, api_timeout="20s"
            ) as admin:
                results = await asyncio.gather(*(admin.create_topics(f"t{n}") for n in range(5)))
                assert all(each.ok for each in results)
                assert (await admin.list_offsets({T0: "end"}))[T0].offset == 5
                assert (await admin.describe_quorum()).role == "leader"
                with pytest.raises(NotYetSupported):
                    admin.list_groups()
        with pytest.raises(InvalidRequest, match="closed"):
            await admin.list_topics()

    asyncio.run(work())
