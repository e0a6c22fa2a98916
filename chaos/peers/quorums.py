"""Two quorums that hold the same metadata, as one drill sees them."""

from collections.abc import Callable
from typing import Protocol

from chaos.history import Outcome
from chaos.live.backends import NoProxies
from chaos.live.edges import CLIENT, Edges, Proxies
from chaos.peers.client import PAUSE_SECONDS, TRY_SECONDS, PeerAnswer, PeerClient
from chaos.peers.cluster import PeerCluster
from kraftlog import Admin, NewTopic
from kraftlog.errors import ConfigError, KraftError, NotYetSupported
from kraftlog.local.cluster import LocalCluster
from kraftlog.local.layout import CLIENTS
from kraftlog.resolver import FileResolver

KRAFTLOG = "kraftlog"
PYSYNCOBJ = "pysyncobj"
ENGINES = (KRAFTLOG, PYSYNCOBJ)


class MetadataClient(Protocol):
    """For one thread."""

    def create_topic(self, name: str, *, seconds: float) -> PeerAnswer: ...
    def delete_topic(self, name: str, *, seconds: float) -> PeerAnswer: ...
    def list_topics(self, *, seconds: float) -> PeerAnswer: ...
    def close(self) -> None: ...


class Quorum(Protocol):
    def await_reign(self) -> tuple[int, str]:
        """An epoch that somebody leads, and who."""
        ...

    def followers(self, leader: str) -> list[str]: ...
    def await_caught_up(self) -> None: ...
    def await_agreement(self) -> object: ...
    def kill(self, name: str) -> None: ...
    def stop(self, name: str) -> None: ...
    def pause(self, name: str) -> None: ...
    def resume(self, name: str) -> None: ...
    def restart(self, name: str) -> None: ...
    def isolate(self, name: str) -> None:
        """Nobody reaches it, and it reaches nobody; clients neither."""
        ...

    def rejoin(self, name: str) -> None: ...
    def client(self) -> MetadataClient: ...
    def close(self) -> None: ...


class PeerQuorum(PeerCluster):
    """With proxies each of its edges goes through one."""

    def __init__(self, directory: str, proxies: Proxies | None = None) -> None:
        super().__init__(directory)
        self._edges = Edges(proxies or NoProxies())
        self._edges.lay(self.layout)

    def followers(self, leader: str) -> list[str]:
        return [name for name in self.names if name != leader]

    def isolate(self, name: str) -> None:
        self._edges.isolate(name, [*self.names, CLIENT])

    def rejoin(self, name: str) -> None:
        self._edges.rejoin(name, [*self.names, CLIENT])

    def client(self) -> PeerClient:
        dial = FileResolver(self.layout.resolve_path(CLIENTS))
        return PeerClient(list(self.addresses.values()), resolve=dial)


class AdminClient:
    """Our own client, its answers in the words of the peer's."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def create_topic(self, name: str, *, seconds: float) -> PeerAnswer:
        wanted = NewTopic(name, partitions=1, replication_factor=1)
        return _outcome(lambda: self._created(wanted, seconds))

    def _created(self, wanted: NewTopic, seconds: float) -> PeerAnswer:
        self._admin.create_topics(wanted, timeout=seconds).raise_for_errors()
        return PeerAnswer(Outcome.OK)

    def delete_topic(self, name: str, *, seconds: float) -> PeerAnswer:
        return _outcome(lambda: self._deleted(name, seconds))

    def _deleted(self, name: str, seconds: float) -> PeerAnswer:
        self._admin.delete_topics(name, timeout=seconds).raise_for_errors()
        return PeerAnswer(Outcome.OK)

    def list_topics(self, *, seconds: float) -> PeerAnswer:
        return _outcome(lambda: self._listed(seconds))

    def _listed(self, seconds: float) -> PeerAnswer:
        names = self._admin.list_topics(timeout=seconds)
        return PeerAnswer(Outcome.OK, topics=tuple(names))

    def close(self) -> None:
        self._admin.close()


def _outcome(work: Callable[[], PeerAnswer]) -> PeerAnswer:
    try:
        return work()
    except KraftError as error:
        outcome = Outcome.UNKNOWN if error.outcome_unknown else Outcome.FAIL
        return PeerAnswer(outcome, error=str(error))


class KraftlogQuorum:
    """Our three controllers, and the one broker that topics need to be placed."""

    def __init__(self, directory: str) -> None:
        self._cluster = LocalCluster(3, 1, data=directory)

    def start(self) -> None:
        self._cluster.start()
        self.await_agreement()

    def await_reign(self) -> tuple[int, str]:
        self._cluster.wait_healthy("60s")
        with self._cluster.admin() as admin:
            now = admin.describe_quorum(timeout="60s")
        return now.epoch, self._cluster.name_of(now.node.node_id)

    def followers(self, leader: str) -> list[str]:
        return [name for name in self._cluster.controllers if name != leader]

    def await_caught_up(self) -> None:
        self._cluster.wait_healthy("60s")

    def await_agreement(self) -> None:
        self._cluster.wait_healthy("60s")

    def kill(self, name: str) -> None:
        self._cluster.kill(name)

    def stop(self, name: str) -> None:
        self._cluster.stop_node(name)

    def pause(self, name: str) -> None:
        self._cluster.pause(name)

    def resume(self, name: str) -> None:
        self._cluster.resume(name)

    def restart(self, name: str) -> None:
        self._cluster.start_node(name)

    def isolate(self, name: str) -> None:
        raise NotYetSupported(
            f"cutting {name} off here", hint="`kraftctl drill run` has our own edges"
        )

    def rejoin(self, name: str) -> None:
        """It was never cut off."""

    def client(self) -> AdminClient:
        """With the same time for each try and the same pause after it as the peer's client has:
        else the gap would be that of request.timeout.ms, or of a back-off that has doubled.
        """
        admin = Admin(
            self._cluster.bootstrap,
            request_timeout=TRY_SECONDS,
            retry_backoff=PAUSE_SECONDS,
            retry_backoff_max=PAUSE_SECONDS,
        )
        return AdminClient(admin)

    def close(self) -> None:
        self._cluster.close()


def open_quorum(engine: str, directory: str, proxies: Proxies | None = None) -> Quorum:
    """Started, with a leader. `proxies` are for the edges of the peer."""
    if engine not in ENGINES:
        raise ConfigError(f"there is no engine {engine!r}", hint=f"there are {', '.join(ENGINES)}")
    quorum = PeerQuorum(directory, proxies) if engine == PYSYNCOBJ else KraftlogQuorum(directory)
    try:
        quorum.start()
    except BaseException:
        quorum.close()
        raise
    return quorum
