from pathlib import Path

import pytest

from brokers.cluster_state import AppliedCluster, ReadyBackend
from brokers.metadata_answers import MetadataAnswers
from brokers.producer_ids import ProducerIds
from tests.brokers.town import town
from tests.loops import run, until

pytestmark = pytest.mark.slow


def test_it_tells_what_was_applied_and_who_leads_the_quorum(tmp_path: Path) -> None:  # R17
    async def story() -> None:
        async with town(tmp_path) as place:
            server = await place.start("b1", node_id="1")
            topic_id = await place.create("t", 1)
            backend = server.service.backend
            assert isinstance(backend, ReadyBackend)
            cluster = backend.cluster
            assert isinstance(cluster, AppliedCluster)
            await until(lambda: cluster.image.topic("t") is not None, "the topic")
            assert cluster.directory.topic_id("t") == topic_id
            assert cluster.directory.endpoint(1) == server.address.endpoint
            told = cluster.controllers()
            assert told.endpoints == ((101, place.peer),)
            assert told.active == 101
            assert told.epoch >= 1
            assert isinstance(backend.answers, MetadataAnswers)
            assert isinstance(backend.producer_ids, ProducerIds)
            assert backend.topics is not None

    run(story())
