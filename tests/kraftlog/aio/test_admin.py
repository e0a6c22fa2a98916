import asyncio

import pytest

from kraftlog.aio import AsyncAdmin
from kraftlog.cluster_health import GREEN
from kraftlog.errors import InvalidRequest, NotYetSupported
from kraftlog.types import TopicPartition
from tests.kraftlog.test_admin import Cluster, create
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
                cluster = Cluster(quorum)
                assert (await admin.wait_until(GREEN)) == (await admin.health())
                cluster.flips = True
                async for event in admin.watch(every="5ms"):
                    assert event.kind in ("broker_fenced", "broker_unfenced")
                    break
                with pytest.raises(NotYetSupported):
                    admin.list_groups()
        with pytest.raises(InvalidRequest, match="closed"):
            await admin.list_topics()

    asyncio.run(work())
