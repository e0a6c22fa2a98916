"""What brokers ask of the controller: to be registered, heard, and told who is in sync."""

from collections.abc import Sequence

from kraftlog.config import Config
from kraftlog.errors import KraftError, NotController
from kraftlog.rpc import controller_pb2
from kraftlog.types import Uuid
from metadata_log.decide import Decision, Outcome
from metadata_log.decide.brokers import Registered, Registration, register
from metadata_log.decide.heartbeats import Heartbeat, HeartbeatReply
from metadata_log.decide.partitions import (
    AlterPartitions,
    IsrChange,
    IsrMember,
    alter_partitions,
)
from metadata_log.decide.producer_ids import ProducerIdBlock, allocate_producer_ids
from metadata_log.image import Image
from metadata_log.places import Agenda
from metadata_log.records import FeatureRange, PartitionState, Recovery
from quorum.broker_watch import BrokerWatch
from quorum.controller import Controller
from quorum.controller_calls import Asked, Calls, Reply
from quorum.controller_wire import decode_listener, decode_uuid, optional_error


class BrokerCalls(Calls):
    def __init__(
        self, controller: Controller, watch: BrokerWatch, static: Config, cluster_id: Uuid
    ) -> None:
        super().__init__(controller)
        self._watch = watch
        self._static = static
        self._cluster_id = cluster_id

    # -- registration and heartbeats

    def register_broker(self, asked: Asked, request: controller_pb2.RegisterBrokerRequest) -> None:
        registration = self._decode_registration(request)

        def decide(image: Image, _: Agenda | None) -> Decision[Registered | None]:
            return register(
                image,
                registration,
                cluster_id=self._cluster_id,
                next_offset=self.controller.ledger.end_offset,
                alive=self._watch.is_alive(registration.broker_id or 0),
                static=self._static,
            )

        def then(response: Registered | None) -> None:
            if response is not None:
                self._watch.registered(response.broker_id, response.broker_epoch)

        self.submit(asked, "register", decide, _encode_registered, then=then, keep=False)

    def _decode_registration(self, request: controller_pb2.RegisterBrokerRequest) -> Registration:
        is_clean = request.HasField("previous_broker_epoch")
        return Registration(
            broker_id=request.broker_id or None,
            cluster_id=self._cluster_id,  # the service has compared it already
            incarnation_id=decode_uuid(request.incarnation_id, "incarnation_id"),
            listeners=(decode_listener(request.endpoint),),
            log_dirs=tuple(decode_uuid(each, "log_dir_ids") for each in request.log_dir_ids),
            features=tuple(
                FeatureRange(each.name, each.min_level, each.max_level) for each in request.features
            ),
            rack=request.rack if request.HasField("rack") else None,
            previous_epoch=request.previous_broker_epoch if is_clean else None,
        )

    def heartbeat(self, asked: Asked, request: controller_pb2.HeartbeatRequest) -> None:
        beat = Heartbeat(
            broker_id=request.broker_id,
            broker_epoch=request.broker_epoch,
            applied_offset=request.applied_offset,
            want_fence=request.want_fence,
            want_shut_down=request.want_shut_down,
        )

        def on_answer(answer: HeartbeatReply | KraftError) -> None:
            asked.answer(answer if isinstance(answer, KraftError) else _encode_heartbeat(answer))

        self._watch.heartbeat(beat, on_answer)

    # -- partitions and producer ids

    def alter_partitions(
        self, asked: Asked, request: controller_pb2.AlterPartitionsRequest
    ) -> None:
        wanted = AlterPartitions(
            request.broker_id,
            request.broker_epoch,
            tuple(_decode_change(change) for change in request.changes),
        )

        def decide(image: Image, _: Agenda | None) -> Decision[tuple[Outcome[PartitionState], ...]]:
            self._check_known(request.broker_epoch)
            return alter_partitions(image, wanted, static=self._static)

        def encode(outcomes: tuple[Outcome[PartitionState], ...]) -> Reply:
            return Reply(alter_partitions=_encode_changes(wanted.changes, outcomes))

        self.submit(asked, "alter partitions", decide, encode, keep=False)

    def allocate_producer_ids(
        self, asked: Asked, request: controller_pb2.AllocateProducerIdsRequest
    ) -> None:
        def decide(image: Image, _: Agenda | None) -> Decision[ProducerIdBlock]:
            self._check_known(request.broker_epoch)
            return allocate_producer_ids(image, request.broker_id, request.broker_epoch)

        def encode(block: ProducerIdBlock) -> Reply:
            reply = controller_pb2.AllocateProducerIdsReply(
                first_id=block.first_id, count=block.count
            )
            return Reply(allocate_producer_ids=reply)

        self.submit(asked, "allocate producer ids", decide, encode, keep=False)

    def _check_known(self, broker_epoch: int) -> None:
        """An epoch that our log has not reached was given by a newer controller than us."""
        if broker_epoch >= self.controller.ledger.end_offset:
            raise NotController(f"broker epoch {broker_epoch} is newer than this log")


def _encode_registered(response: Registered | None) -> Reply:
    if response is None:  # a step on the way; nobody is answered with it
        return Reply()
    reply = controller_pb2.RegisterBrokerReply(
        broker_id=response.broker_id, broker_epoch=response.broker_epoch
    )
    return Reply(register_broker=reply)


def _encode_heartbeat(response: HeartbeatReply) -> Reply:
    reply = controller_pb2.HeartbeatReply(
        is_caught_up=response.is_caught_up,
        is_fenced=response.is_fenced,
        should_shut_down=response.should_shut_down,
    )
    return Reply(heartbeat=reply)


def _decode_change(change: controller_pb2.IsrChange) -> IsrChange:
    return IsrChange(
        topic_id=decode_uuid(change.topic_id, "topic_id"),
        partition=change.partition,
        leader_epoch=change.leader_epoch,
        partition_epoch=change.partition_epoch,
        isr=tuple(
            IsrMember(each.broker_id, each.broker_epoch if each.HasField("broker_epoch") else None)
            for each in change.isr
        ),
        recovery=Recovery.RECOVERING if change.recovering else Recovery.RECOVERED,
    )


def _encode_changes(
    changes: Sequence[IsrChange], outcomes: Sequence[Outcome[PartitionState]]
) -> controller_pb2.AlterPartitionsReply:
    results = []
    for change, outcome in zip(changes, outcomes, strict=True):
        result = controller_pb2.IsrResult(
            topic_id=change.topic_id.raw,
            partition=change.partition,
            error=optional_error(outcome.error),
        )
        if outcome.value is not None:
            result.leader_id = outcome.value.leader
            result.leader_epoch = outcome.value.leader_epoch
            result.partition_epoch = outcome.value.partition_epoch
            result.isr.extend(outcome.value.isr)
            result.recovering = outcome.value.recovery is Recovery.RECOVERING
        results.append(result)
    return controller_pb2.AlterPartitionsReply(results=results)
