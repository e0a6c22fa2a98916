"""What answers a broker's requests, put together: `brokers.backend` says what each part is for."""

from dataclasses import dataclass

from brokers.auto_topics import TopicCreator
from brokers.backend import ClusterState, DataPlane
from brokers.metadata import MetadataPublisher
from brokers.metadata_answers import Controllers, MetadataAnswers
from brokers.metadata_view import ImageView
from brokers.producer_ids import ProducerIds
from metadata_log.image import Image
from quorum.observer import MetadataObserver


class AppliedCluster:
    """`brokers.backend.ClusterState`: the metadata that was applied, and who leads the quorum."""

    def __init__(self, publisher: MetadataPublisher, observer: MetadataObserver) -> None:
        self._publisher = publisher
        self._observer = observer

    @property
    def image(self) -> Image:
        return self._publisher.view.image

    @property
    def directory(self) -> ImageView:
        return self._publisher.view

    def controllers(self) -> Controllers:
        leader = self._observer.leader
        return Controllers(
            tuple((voter.key.node_id, voter.endpoint) for voter in self._observer.controllers),
            None if leader is None else leader.key.node_id,
            self._observer.epoch,
        )


@dataclass(frozen=True, slots=True)
class ReadyBackend:
    """`brokers.backend.Backend`."""

    data: DataPlane
    cluster: ClusterState
    answers: MetadataAnswers
    producer_ids: ProducerIds
    topics: TopicCreator | None
