"""The asynchronous admin client."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self, Unpack

from google.protobuf.message import Message

from kraftlog import _admin_wire as wire
from kraftlog._admin_core import AdminArguments, AdminCore, AdminOptions
from kraftlog._admin_offsets import OffsetPlace, delete_records, list_offsets
from kraftlog._admin_watch import HEALTH_TIMEOUT, WATCH_EVERY, Watch, ask_health, wait_for_grade
from kraftlog._client_wire import error_of
from kraftlog._closing import closed
from kraftlog._later import from_profile, not_yet
from kraftlog.admin_types import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigValue,
    CreatedTopic,
    ListedOffset,
    NewTopic,
    OngoingReassignment,
    QuorumDescription,
    ReplicaDescription,
    TopicDescription,
    Voter,
)
from kraftlog.cluster_events import ClusterEvent
from kraftlog.cluster_health import GREEN, ClusterHealth, Grade
from kraftlog.durations import Duration, to_ms
from kraftlog.errors import InvalidRequest, NotYetSupported
from kraftlog.results import Results
from kraftlog.rpc import broker_pb2, controller_pb2, raft_pb2
from kraftlog.types import TopicPartition, Uuid

_QUOTAS = {
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
}


class AsyncAdmin:
    """As `kraftlog.Admin`; every call is awaited."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = "localhost:19101",
        *,
        bootstrap_controllers: str | Sequence[str] | None = None,
        **options: Unpack[AdminArguments],
    ) -> None:
        self._options = AdminOptions(bootstrap_servers, bootstrap_controllers, options)
        self._opening = asyncio.Lock()
        self._core: AdminCore | None = None
        self._is_open = True

    async def _started(self) -> AdminCore:
        async with self._opening:
            if not self._is_open:
                raise closed("admin")
            if self._core is None:
                self._core = await AdminCore.open(self._options)
            return self._core

    def _timeout_ms(self, timeout: Duration | None) -> int:
        default = self._options.common.api_timeout_ms
        return default if timeout is None else to_ms(timeout, "timeout")

    async def _change(
        self,
        kind: str,
        request: Message,
        timeout: Duration | None,
    ) -> controller_pb2.ControllerReply:
        core = await self._started()
        timeout_ms = self._timeout_ms(timeout)
        return await core.controller.ask(kind, request, timeout_ms=timeout_ms, changes=True)

    async def _read(
        self,
        kind: str,
        request: Message,
        timeout: Duration | None,
    ) -> controller_pb2.ControllerReply:
        core = await self._started()
        timeout_ms = self._timeout_ms(timeout)
        return await core.controller.ask(kind, request, timeout_ms=timeout_ms, changes=False)

    # -- topics

    async def create_topics(
        self,
        topics: Iterable[NewTopic | str] | NewTopic | str,
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[str, CreatedTopic]:
        """Create topics; a name alone takes the cluster's defaults."""
        given = [topics] if isinstance(topics, str | NewTopic) else list(topics)
        wanted = [NewTopic(each) if isinstance(each, str) else each for each in given]
        request = controller_pb2.CreateTopicsRequest(
            topics=[wire.encode_new_topic(each) for each in wanted], validate_only=validate_only
        )
        reply = await self._change("create_topics", request, timeout)
        return Results(wire.decode_created(reply.create_topics, _CONTROLLER))

    async def delete_topics(
        self,
        topics: Iterable[str | Uuid] | str | Uuid,
        *,
        timeout: Duration | None = None,
    ) -> Results[str, None]:
        given = [topics] if isinstance(topics, str | Uuid) else list(topics)
        request = controller_pb2.DeleteTopicsRequest(topics=map(wire.encode_topic_ref, given))
        reply = await self._change("delete_topics", request, timeout)
        return Results(wire.decode_named(reply.delete_topics.topics, _CONTROLLER))

    async def create_partitions(
        self,
        totals: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[str, None]:
        """Give topics more partitions; the numbers are new totals."""
        request = controller_pb2.CreatePartitionsRequest(
            topics=[
                controller_pb2.NewPartitions(topic=topic, count=count)
                for topic, count in totals.items()
            ],
            validate_only=validate_only,
        )
        reply = await self._change("create_partitions", request, timeout)
        return Results(wire.decode_named(reply.create_partitions.topics, _CONTROLLER))

    async def describe_topics(
        self,
        topics: Iterable[str | Uuid] | str | Uuid | None = None,
        *,
        timeout: Duration | None = None,
    ) -> Results[str, TopicDescription]:
        """Topics as they are committed; without names all of them."""
        given = [topics] if isinstance(topics, str | Uuid) else list(topics or ())
        if topics is not None and not given:
            return Results({})
        request = controller_pb2.DescribeTopicsRequest(topics=map(wire.encode_topic_ref, given))
        reply = await self._read("describe_topics", request, timeout)
        return Results(
            {
                each.name or str(Uuid(each.topic_id)): error_of(each.error, _CONTROLLER)
                if each.HasField("error")
                else wire.decode_topic(each)
                for each in reply.describe_topics.topics
            }
        )

    async def list_topics(self, *, timeout: Duration | None = None) -> list[str]:
        return sorted(await self.describe_topics(timeout=timeout))

    # -- configs and features

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, ConfigValue]],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[ConfigResource, None]:
        """Change some configs and leave the others; None goes back to the default."""
        for resource, named in changes.items():
            for name in _QUOTAS & named.keys():
                raise NotYetSupported(f"{name} of {resource}", hint="there are no quotas yet")
        request = controller_pb2.AlterConfigsRequest(
            resources=[wire.encode_changes(*each) for each in changes.items()],
            validate_only=validate_only,
        )
        reply = await self._change("alter_configs", request, timeout)
        return Results(
            {
                wire.decode_resource(each.resource): error_of(each.error, _CONTROLLER)
                if each.HasField("error")
                else None
                for each in reply.alter_configs.resources
            }
        )

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource] | ConfigResource,
        *,
        timeout: Duration | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Every config of each, with its value and where that comes from."""
        given = [resources] if isinstance(resources, ConfigResource) else resources
        request = controller_pb2.DescribeConfigsRequest(
            resources=[wire.encode_resource(each) for each in given]
        )
        reply = await self._read("describe_configs", request, timeout)
        return Results(
            {
                wire.decode_resource(each.resource): error_of(each.error, _CONTROLLER)
                if each.HasField("error")
                else wire.decode_entries(each)
                for each in reply.describe_configs.resources
            }
        )

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        allow_downgrade: bool = False,
        unsafe: bool = False,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[str, None]:
        request = controller_pb2.UpdateFeaturesRequest(
            updates=[
                controller_pb2.FeatureUpdate(
                    name=name, level=level, allow_downgrade=allow_downgrade, unsafe=unsafe
                )
                for name, level in levels.items()
            ],
            validate_only=validate_only,
        )
        reply = await self._change("update_features", request, timeout)
        return Results(wire.decode_named(reply.update_features.features, _CONTROLLER))

    # -- partitions

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] = (),
        *,
        unclean: bool = False,
        timeout: Duration | None = None,
    ) -> Results[TopicPartition, None]:
        """Make preferred replicas leaders, of all partitions if none is named. `unclean`: of those
        without a leader, also one that may lack committed records.
        """
        kind = (
            controller_pb2.ELECTION_TYPE_UNCLEAN
            if unclean
            else controller_pb2.ELECTION_TYPE_PREFERRED
        )
        request = controller_pb2.ElectLeadersRequest(
            type=kind, partitions=map(wire.encode_place, partitions)
        )
        reply = await self._change("elect_leaders", request, timeout)
        return Results(wire.decode_places(reply.elect_leaders.partitions, _CONTROLLER))

    async def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        timeout: Duration | None = None,
    ) -> Results[TopicPartition, None]:
        """Move partitions to other brokers; None cancels a move that goes on."""
        request = controller_pb2.ReassignRequest(
            partitions=[wire.encode_target(*each) for each in targets.items()]
        )
        reply = await self._change("reassign", request, timeout)
        return Results(wire.decode_places(reply.reassign.partitions, _CONTROLLER))

    async def list_reassignments(
        self,
        partitions: Iterable[TopicPartition] = (),
        *,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, OngoingReassignment]:
        """The moves that go on."""
        request = controller_pb2.ListReassignmentsRequest(
            partitions=map(wire.encode_place, partitions)
        )
        reply = await self._read("list_reassignments", request, timeout)
        return wire.decode_reassignments(reply.list_reassignments)

    # -- offsets and records, asked of the leaders

    async def list_offsets(
        self,
        places: Mapping[TopicPartition, OffsetPlace],
        *,
        timeout: Duration | None = None,
    ) -> Results[TopicPartition, ListedOffset]:
        """Which offset is the start, the end, the first of a time, or that of the latest
        timestamp ("max_timestamp").
        """
        core = await self._started()
        return await list_offsets(core.cluster, places, self._timeout_ms(timeout))

    async def delete_records(
        self,
        before: Mapping[TopicPartition, int | Literal["end"]],
        *,
        timeout: Duration | None = None,
    ) -> Results[TopicPartition, int]:
        """Delete all records below an offset, or below the high watermark ("end"). Returns where
        each partition now begins.
        """
        core = await self._started()
        return await delete_records(core.cluster, before, self._timeout_ms(timeout))

    async def describe_replicas(
        self,
        broker_id: int,
        topics: Iterable[str] = (),
        *,
        digest: bool | Mapping[TopicPartition, tuple[int, int]] = False,
        timeout: Duration | None = None,
    ) -> list[ReplicaDescription]:
        """What a broker has on its disks, of some topics or of all. `digest`: also a checksum of
        all that is committed, or of these offsets (the second one exclusive): None where some of
        them are not there.
        """
        core = await self._started()
        timeout_ms = self._timeout_ms(timeout)
        if broker_id not in core.cluster.view.brokers:
            await core.cluster.refresh(timeout_ms=timeout_ms)
        node = core.cluster.view.brokers.get(broker_id)
        if node is None:
            raise InvalidRequest(f"no broker {broker_id} is up")
        request = broker_pb2.DescribeReplicasRequest(
            topics=[broker_pb2.TopicName(name=name) for name in topics],
            digest=digest is True,
            digest_of=wire.encode_ranges(digest) if isinstance(digest, Mapping) else (),
        )
        reply = await core.cluster.ask(
            node.address, "describe_replicas", request, timeout_ms=timeout_ms
        )
        return [wire.decode_replica(each) for each in reply.describe_replicas.replicas]

    # -- the cluster

    async def describe_cluster(
        self,
        *,
        timeout: Duration | None = None,
    ) -> ClusterDescription:
        request = controller_pb2.DescribeClusterRequest()
        reply = await self._read("describe_cluster", request, timeout)
        return wire.decode_cluster(reply.describe_cluster, reply.offset)

    async def unregister_broker(
        self,
        broker_id: int,
        *,
        timeout: Duration | None = None,
    ) -> None:
        """Forget a broker that will not come back."""
        request = controller_pb2.UnregisterBrokerRequest(broker_id=broker_id)
        await self._change("unregister_broker", request, timeout)

    async def fence_broker(
        self,
        broker_id: int,
        *,
        fenced: bool = True,
        timeout: Duration | None = None,
    ) -> None:
        """Take a broker out of service until it is let back in (`fenced=False`)."""
        request = controller_pb2.FenceBrokerRequest(broker_id=broker_id, fenced=fenced)
        await self._change("fence_broker", request, timeout)

    async def health(self, *, timeout: Duration = HEALTH_TIMEOUT) -> ClusterHealth:
        """Its grade, and why. A cluster that does not answer is RED; that is no error."""
        return await ask_health(self, timeout)

    async def wait_until(
        self,
        grade: Grade | str = GREEN,
        timeout: Duration | None = None,
        *,
        stable: Duration = 0,
    ) -> ClusterHealth:
        """Until the cluster is at least that well, and has been for as long as `stable` says;
        TimeoutError_ tells what is wrong with it.
        """
        limit = self._timeout_ms(timeout) / 1000
        return await wait_for_grade(self, grade, limit, stable)

    def watch(self, *, every: Duration = WATCH_EVERY) -> AsyncIterator[ClusterEvent]:
        """What changes from the first step on, for ever: brokers, leaders, replicas, topics."""
        return Watch(every).events(self)

    # -- the quorum

    async def describe_quorum(
        self,
        address: str | None = None,
        *,
        timeout: Duration | None = None,
    ) -> QuorumDescription:
        """What the leader of the quorum says; with an address, what that controller believes."""
        core = await self._started()
        timeout_ms = self._timeout_ms(timeout)
        if address is not None:
            return await core.describe_quorum(address, timeout_ms)
        return await core.quorum_leader(timeout_ms)

    async def controllers(self, *, timeout: Duration | None = None) -> list[str]:
        """The addresses of the controllers."""
        core = await self._started()
        return await core.controller.controllers(self._timeout_ms(timeout))

    async def add_voter(self, voter: Voter, *, timeout: Duration | None = None) -> None:
        """Make an observer of the quorum a voter, once it has caught up."""
        request = raft_pb2.AddVoterRequest(voter=wire.encode_voter(voter))
        core = await self._started()
        await core.change_voters("AddVoter", request, self._timeout_ms(timeout))

    async def remove_voter(self, voter: Voter, *, timeout: Duration | None = None) -> None:
        request = raft_pb2.RemoveVoterRequest(key=wire.encode_voter_key(voter))
        core = await self._started()
        await core.change_voters("RemoveVoter", request, self._timeout_ms(timeout))

    # -- what comes later

    from_profile = staticmethod(from_profile)
    list_groups = not_yet("list_groups", "consumer groups")
    describe_groups = not_yet("describe_groups", "consumer groups")
    group_offsets = not_yet("group_offsets", "consumer groups")
    alter_group_offsets = not_yet("alter_group_offsets", "consumer groups")
    delete_groups = not_yet("delete_groups", "consumer groups")
    remove_members = not_yet("remove_members", "consumer groups")
    describe_producers = not_yet("describe_producers", "transactions")
    list_transactions = not_yet("list_transactions", "transactions")
    abort_transaction = not_yet("abort_transaction", "transactions")
    alter_client_quotas = not_yet("alter_client_quotas", "quotas")
    describe_client_quotas = not_yet("describe_client_quotas", "quotas")

    # -- the end

    async def close(self) -> None:
        async with self._opening:
            self._is_open = False
            core, self._core = self._core, None
        if core is not None:
            await core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


_CONTROLLER = "the controller"
