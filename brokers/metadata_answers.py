"""Answers to Metadata: who is in the cluster, who leads what, and where everybody listens (R17).

What does not change between two images is encoded once: an image shares the topics that did not
change with the one before it, so a topic's bytes are kept as long as the topic is the same object.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from brokers.wire import EMPTY_DIRECTORY, encode_endpoint, encode_error
from kraftlog.connection import MESSAGE_BYTES_MAX
from kraftlog.errors import (
    KraftError,
    RecordTooLarge,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kraftlog.framing import enclose
from kraftlog.rpc import broker_pb2, common_pb2
from kraftlog.types import UUID_BYTES, Uuid
from metadata_log.image import Image, Topic

REPLY_BYTES_MAX = MESSAGE_BYTES_MAX - (64 << 10)
"""Leaves room for what else is in the message."""

WARM_SLICE = 100
NO_REFUSALS: Mapping[str, KraftError] = {}

_TOPICS_FIELD = broker_pb2.MetadataReply.TOPICS_FIELD_NUMBER


@dataclass(frozen=True, slots=True)
class Controllers:
    """The quorum as this broker sees it."""

    endpoints: tuple[tuple[int, str], ...] = ()
    active: int | None = None
    epoch: int = 0


class MetadataAnswers:
    def __init__(self, cluster_id: bytes) -> None:
        self._cluster_id = cluster_id
        self._topics: dict[Uuid, tuple[Topic, bytes]] = {}
        self._head: tuple[Image, Controllers, bytes] | None = None
        self._all: tuple[Image, bytes] | None = None

    def answer(
        self,
        request: broker_pb2.MetadataRequest,
        image: Image,
        controllers: Controllers,
        refused: Mapping[str, KraftError] = NO_REFUSALS,
    ) -> bytes:
        """An encoded MetadataReply. `refused` says of topics why they could not be created.

        RecordTooLarge if it would not fit into a message.
        """
        head = self._encode_head(image, controllers)
        if request.all_topics:
            topics = self._encode_all(image)
        else:
            topics = b"".join(self._encode_asked(asked, image, refused) for asked in request.topics)
        if len(head) + len(topics) > REPLY_BYTES_MAX:
            raise RecordTooLarge(
                f"the metadata of {image.partition_count} partitions has"
                f" {len(head) + len(topics)} bytes, over {REPLY_BYTES_MAX}",
                hint="ask for some topics by name",
            )
        return head + topics

    async def warm(self, image: Image) -> None:
        """Encode all topics in slices, so that an answer about all of them is quick."""
        for number, topic in enumerate(image.topics.values()):
            self._encode_topic(topic)
            if number % WARM_SLICE == 0:
                await asyncio.sleep(0)

    def is_warm(self, image: Image) -> bool:
        """Whether an answer about all topics is quick."""
        return self._all is not None and self._all[0] is image

    def missing(self, request: broker_pb2.MetadataRequest, image: Image) -> list[str]:
        """Topics that were asked for by a name that does not exist."""
        return [
            asked.name
            for asked in request.topics
            if not asked.topic_id and image.topic(asked.name) is None
        ]

    # -- nodes

    def _encode_head(self, image: Image, controllers: Controllers) -> bytes:
        known = self._head
        if known is not None and known[0] is image and known[1] == controllers:
            return known[2]
        reply = broker_pb2.MetadataReply(
            cluster_id=self._cluster_id,
            offset=image.end_offset,
            brokers=[
                broker_pb2.BrokerNode(
                    node_id=broker.id,
                    endpoint=common_pb2.Endpoint(
                        host=broker.listeners[0].host, port=broker.listeners[0].port
                    ),
                    rack=broker.rack,
                )
                for broker in image.sorted_brokers()
                if not broker.is_fenced and broker.listeners
            ],
            controllers=[
                common_pb2.NodeEndpoint(node_id=node_id, endpoint=encode_endpoint(endpoint))
                for node_id, endpoint in controllers.endpoints
            ],
            controller_id=controllers.active,
            controller_epoch=controllers.epoch,
        )
        encoded = reply.SerializeToString()
        self._head = (image, controllers, encoded)
        return encoded

    # -- topics

    def _encode_all(self, image: Image) -> bytes:
        known = self._all
        if known is not None and known[0] is image:
            return known[1]
        encoded = b"".join(self._encode_topic(topic) for topic in image.sorted_topics())
        for gone in [each for each in self._topics if each not in image.topics]:
            del self._topics[gone]
        self._all = (image, encoded)
        return encoded

    def _encode_asked(
        self, asked: broker_pb2.TopicName, image: Image, refused: Mapping[str, KraftError]
    ) -> bytes:
        if not asked.topic_id:
            topic = image.topic(asked.name)
            if topic is None:
                return refused_topic(asked, refused.get(asked.name) or _no_name(asked))
            return self._encode_topic(topic)
        topic_id = asked.topic_id
        topic = image.topics.get(Uuid(topic_id)) if len(topic_id) == UUID_BYTES else None
        return self._encode_topic(topic) if topic else refused_topic(asked, _no_id(asked))

    def _encode_topic(self, topic: Topic) -> bytes:
        known = self._topics.get(topic.id)
        if known is not None and known[0] is topic:
            return known[1]
        message = broker_pb2.TopicMetadata(name=topic.name, topic_id=topic.id.raw)
        for number, state in enumerate(topic.partitions):
            message.partitions.add(
                partition=number,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replicas=state.replicas,
                isr=state.isr,
                elr=state.elr,
            )
        encoded = b"".join(enclose(_TOPICS_FIELD, (message.SerializeToString(),)))
        self._topics[topic.id] = (topic, encoded)
        return encoded


def refused_topic(asked: broker_pb2.TopicName, error: KraftError) -> bytes:
    """A topic that cannot be described, as an element of a reply."""
    message = broker_pb2.TopicMetadata(name=asked.name, topic_id=asked.topic_id)
    message.error.CopyFrom(encode_error(error, None, EMPTY_DIRECTORY))
    return b"".join(enclose(_TOPICS_FIELD, (message.SerializeToString(),)))


def _no_name(asked: broker_pb2.TopicName) -> KraftError:
    return UnknownTopicOrPartition(
        f"no topic {asked.name!r}", hint="create it, or look for a misspelt name"
    )


def _no_id(asked: broker_pb2.TopicName) -> KraftError:
    return UnknownTopicId(
        f"no topic with id {asked.topic_id.hex()}",
        hint="it may be deleted: ask for it by name",
    )
