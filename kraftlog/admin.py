"""The synchronous admin client: the asynchronous one on a private thread."""

import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self, TypeVar, Unpack

from kraftlog._admin_core import AdminArguments, AdminOptions
from kraftlog._admin_offsets import OffsetPlace
from kraftlog._admin_watch import HEALTH_TIMEOUT, WATCH_EVERY, Watch
from kraftlog._closing import closed, told_if_closed
from kraftlog._later import from_profile, not_yet
from kraftlog._loop_thread import LoopThread
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
from kraftlog.aio.admin import AsyncAdmin
from kraftlog.cluster_events import ClusterEvent
from kraftlog.cluster_health import GREEN, ClusterHealth, Grade
from kraftlog.durations import Duration
from kraftlog.results import Results
from kraftlog.types import TopicPartition, Uuid

T = TypeVar("T")


class Admin:
    """Creates, changes and describes what a cluster has.

        with Admin("b1:19101") as admin:
            admin.create_topics(NewTopic("orders", 6, 3)).raise_for_errors()

    The active controller is found by any broker, or by `bootstrap_controllers`, and asked directly.
    A call goes on trying for `timeout` (default: api_timeout, 60 s); what changes something is
    carried out once, however often it has to be sent. Calls about many things return Results, with
    an answer or an error for each.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = "localhost:19101",
        *,
        bootstrap_controllers: str | Sequence[str] | None = None,
        **options: Unpack[AdminArguments],
    ) -> None:
        AdminOptions(bootstrap_servers, bootstrap_controllers, options)  # errors come here, now

        async def open_admin() -> AsyncAdmin:
            return AsyncAdmin(
                bootstrap_servers, bootstrap_controllers=bootstrap_controllers, **options
            )

        self._engine = _Engine(open_admin)
        self._run = self._engine.run
        self._finalizer = weakref.finalize(self, self._engine.let_go)
        self._finalizer.atexit = False  # then its thread is ended instead, and waited for

    # -- topics

    def create_topics(
        self,
        topics: Iterable[NewTopic | str] | NewTopic | str,
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[str, CreatedTopic]:
        """Create topics; a name alone takes the cluster's defaults."""
        return self._run(
            lambda a: a.create_topics(topics, validate_only=validate_only, timeout=timeout)
        )

    def delete_topics(
        self, topics: Iterable[str | Uuid] | str | Uuid, *, timeout: Duration | None = None
    ) -> Results[str, None]:
        return self._run(lambda a: a.delete_topics(topics, timeout=timeout))

    def create_partitions(
        self,
        totals: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[str, None]:
        """Give topics more partitions; the numbers are new totals."""
        return self._run(
            lambda a: a.create_partitions(totals, validate_only=validate_only, timeout=timeout)
        )

    def describe_topics(
        self,
        topics: Iterable[str | Uuid] | str | Uuid | None = None,
        *,
        timeout: Duration | None = None,
    ) -> Results[str, TopicDescription]:
        """Topics as they are committed; without names all of them."""
        return self._run(lambda a: a.describe_topics(topics, timeout=timeout))

    def list_topics(self, *, timeout: Duration | None = None) -> list[str]:
        return self._run(lambda a: a.list_topics(timeout=timeout))

    # -- configs and features

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, ConfigValue]],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[ConfigResource, None]:
        """Change some configs and leave the others; None goes back to the default."""
        return self._run(
            lambda a: a.alter_configs(changes, validate_only=validate_only, timeout=timeout)
        )

    def describe_configs(
        self,
        resources: Iterable[ConfigResource] | ConfigResource,
        *,
        timeout: Duration | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Every config of each, with its value and where that comes from."""
        return self._run(lambda a: a.describe_configs(resources, timeout=timeout))

    def update_features(
        self,
        levels: Mapping[str, int],
        *,
        allow_downgrade: bool = False,
        unsafe: bool = False,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> Results[str, None]:
        return self._run(
            lambda a: a.update_features(
                levels,
                allow_downgrade=allow_downgrade,
                unsafe=unsafe,
                validate_only=validate_only,
                timeout=timeout,
            )
        )

    # -- partitions

    def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] = (),
        *,
        unclean: bool = False,
        timeout: Duration | None = None,
    ) -> Results[TopicPartition, None]:
        """Make preferred replicas leaders, of all partitions if none is named. `unclean`: of those
        without a leader, also one that may lack committed records.
        """
        return self._run(lambda a: a.elect_leaders(partitions, unclean=unclean, timeout=timeout))

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        timeout: Duration | None = None,
    ) -> Results[TopicPartition, None]:
        """Move partitions to other brokers; None cancels a move that goes on."""
        return self._run(lambda a: a.reassign(targets, timeout=timeout))

    def list_reassignments(
        self, partitions: Iterable[TopicPartition] = (), *, timeout: Duration | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """The moves that go on."""
        return self._run(lambda a: a.list_reassignments(partitions, timeout=timeout))

    def list_offsets(
        self, places: Mapping[TopicPartition, OffsetPlace], *, timeout: Duration | None = None
    ) -> Results[TopicPartition, ListedOffset]:
        """Which offset is the start, the end, the first of a time, or that of the latest
        timestamp ("max_timestamp").
        """
        return self._run(lambda a: a.list_offsets(places, timeout=timeout))

    def delete_records(
        self,
        before: Mapping[TopicPartition, int | Literal["end"]],
        *,
        timeout: Duration | None = None,
    ) -> Results[TopicPartition, int]:
        """Delete all records below an offset, or below the high watermark ("end"). Returns where
        each partition now begins.
        """
        return self._run(lambda a: a.delete_records(before, timeout=timeout))

    def describe_replicas(
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
        return self._run(
            lambda a: a.describe_replicas(broker_id, topics, digest=digest, timeout=timeout)
        )

    # -- the cluster and its quorum

    def describe_cluster(self, *, timeout: Duration | None = None) -> ClusterDescription:
        return self._run(lambda a: a.describe_cluster(timeout=timeout))

    def health(self, *, timeout: Duration = HEALTH_TIMEOUT) -> ClusterHealth:
        """Its grade, and why. A cluster that does not answer is RED; that is no error."""
        return self._run(lambda a: a.health(timeout=timeout))

    def wait_until(
        self,
        grade: Grade | str = GREEN,
        timeout: Duration | None = None,
        *,
        stable: Duration = 0,
    ) -> ClusterHealth:
        """Until the cluster is at least that well, and has been for as long as `stable` says;
        TimeoutError_ tells what is wrong with it.
        """
        return self._run(lambda a: a.wait_until(grade, timeout, stable=stable))

    def watch(self, *, every: Duration = WATCH_EVERY) -> Iterator[ClusterEvent]:
        """What changes from now on, for ever: brokers, leaders, replicas, topics."""
        watch = Watch(every)
        self._run(watch.begin)
        return self._events(watch)

    def _events(self, watch: Watch) -> Iterator[ClusterEvent]:
        while True:
            yield from self._run(watch.next_events)

    def unregister_broker(self, broker_id: int, *, timeout: Duration | None = None) -> None:
        """Forget a broker that will not come back."""
        return self._run(lambda a: a.unregister_broker(broker_id, timeout=timeout))

    def fence_broker(
        self, broker_id: int, *, fenced: bool = True, timeout: Duration | None = None
    ) -> None:
        """Take a broker out of service until it is let back in (`fenced=False`)."""
        return self._run(lambda a: a.fence_broker(broker_id, fenced=fenced, timeout=timeout))

    def describe_quorum(
        self, address: str | None = None, *, timeout: Duration | None = None
    ) -> QuorumDescription:
        """What the leader of the quorum says; with an address, what that controller believes."""
        return self._run(lambda a: a.describe_quorum(address, timeout=timeout))

    def controllers(self, *, timeout: Duration | None = None) -> list[str]:
        """The addresses of the controllers."""
        return self._run(lambda a: a.controllers(timeout=timeout))

    def add_voter(self, voter: Voter, *, timeout: Duration | None = None) -> None:
        """Make an observer of the quorum a voter, once it has caught up."""
        return self._run(lambda a: a.add_voter(voter, timeout=timeout))

    def remove_voter(self, voter: Voter, *, timeout: Duration | None = None) -> None:
        return self._run(lambda a: a.remove_voter(voter, timeout=timeout))

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

    def close(self) -> None:
        self._finalizer.detach()
        self._engine.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Engine:
    """Thread and admin. It does not refer to its owner, which can so be dropped."""

    def __init__(self, open_admin: Callable[[], Coroutine[object, object, AsyncAdmin]]) -> None:
        self._open_admin = open_admin
        self._thread: LoopThread | None = None
        self._admin: AsyncAdmin | None = None
        self._is_open = True

    def run(self, work: Callable[[AsyncAdmin], Coroutine[object, object, T]]) -> T:
        if not self._is_open:
            raise closed("admin")
        if self._thread is None or self._admin is None:
            self._thread = LoopThread("kraftlog-admin", self.stop)
            self._admin = self._thread.run(self._open_admin())
        with told_if_closed("admin"):
            return self._thread.run(work(self._admin))

    def stop(self) -> None:
        """End admin and thread. A second time does nothing."""
        self._is_open = False
        thread, admin = self._thread, self._admin
        self._thread = self._admin = None
        if thread is not None:
            try:
                if admin is not None:
                    thread.run(admin.close())
            finally:
                thread.stop()

    def let_go(self) -> None:
        """As stop, but the thread does it while nobody waits: the admin was dropped."""
        self._is_open = False
        if self._thread is not None:
            self._thread.let_go(None if self._admin is None else self._admin.close())
