"""What `python -m quorum` can do. `kraftctl quorum` calls the same functions.

Each takes what it needs and an Output, and returns an exit code; errors are KraftErrors.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace

from kraftlog._check import InvariantViolation
from kraftlog.clock import SystemClock
from kraftlog.errors import ConfigError, KraftError
from kraftlog.resolver import resolver
from kraftlog.serving import check_can_listen
from kraftlog.types import Uuid
from quorum.batches import decode_key
from quorum.client import Description, QuorumClient
from quorum.config import ServerConfig
from quorum.core.messages import ReplicaKey, Voter
from quorum.directory import (
    AlreadyFormatted,
    Identity,
    NotFormatted,
    Seat,
    form_directories,
    format_directory,
    open_directory,
)
from quorum.joining import NodeIdTaken, become_voter
from quorum.journal import JournalApplication
from quorum.metadata_service import MetadataService
from quorum.output import Output
from quorum.server import (
    BROKEN_INVARIANT_EXIT_CODE,
    Application,
    Beside,
    ControllerServer,
    MakeApplication,
    open_controller,
    spare_the_loop,
)
from quorum.status import read_status, status_json, status_text
from storage.files import OsFiles
from storage.meta_properties import META_PROPERTIES_FILE

logger = logging.getLogger(__name__)

OK = 0
UNHEALTHY = 3
INTERRUPTED = 130

PROGRAM = "python -m quorum"


class ClusterExists(AlreadyFormatted):
    """Peers that were to be new belong to a cluster already."""


# -- making replicas


def format_replica(config: ServerConfig, cluster_id: Uuid, output: Output) -> int:
    """Format an empty directory as an observer of a cluster that exists."""
    node_id = _node_id(config)
    identity = format_directory(
        OsFiles(), config.directory, SystemClock(), cluster_id=cluster_id, node_id=node_id
    )
    output.show(
        {
            "cluster_id": str(cluster_id),
            "node_id": node_id,
            "directory_id": str(identity.key.directory_id),
        },
        f"{config.directory} is node {node_id} of cluster {cluster_id},"
        f" directory id {identity.key.directory_id}, not a voter",
    )
    return OK


def form(config: ServerConfig, output: Output, *, restart: str) -> int:
    """Found a cluster with one voter, this process."""
    node_id = _node_id(config)
    if config.listen.endswith(":0") and config.advertise is None:
        raise ConfigError(
            f"listeners = {config.listen} leaves the port open",
            hint="the address of a voter is written down for the others: choose a port",
        )
    seat = Seat(node_id, config.directory, config.endpoint(_port(config.listen)))

    async def run() -> int:
        await _refuse_second_cluster(config.peers)
        files = OsFiles()
        if not files.exists(f"{config.directory}/{META_PROPERTIES_FILE}"):
            check_can_listen(config.listen)  # before anything is written that names the address
        form_directories(files, [seat], SystemClock())
        return await _serve(config, output, Words(restart, invites=True))

    return asyncio.run(run())


def form_many(seats: Sequence[Seat], peers: Sequence[str], output: Output) -> int:
    """Format several directories as the voters of one new cluster; each is then run by itself."""
    asyncio.run(_refuse_second_cluster(peers))
    cluster_id, made = form_directories(OsFiles(), seats, SystemClock())
    lines = [
        f"{PROGRAM} run --directory {seat.directory} --listen {seat.endpoint}" for seat in seats
    ]
    output.show(
        {
            "cluster_id": str(cluster_id),
            "voters": [
                {
                    "node_id": seat.node_id,
                    "directory": seat.directory,
                    "directory_id": str(identity.key.directory_id),
                    "endpoint": seat.endpoint,
                }
                for seat, identity in zip(seats, made, strict=True)
            ],
        },
        "\n".join([f"cluster {cluster_id} with {len(seats)} voters; start each:", *lines]),
    )
    return OK


async def _refuse_second_cluster(peers: Sequence[str]) -> None:
    """Two clusters that were meant to be one are the worst mistake there is to make here."""
    async with QuorumClient(peers, resolve=resolver(os.environ)) as client:
        for address, answer in await client.describe_all(peers):
            if isinstance(answer, Description):
                raise ClusterExists(
                    f"{address} belongs to cluster {Uuid(answer.cluster_id)} already",
                    hint=f"become a member of it: kraftctl quorum join {address} ...",
                )


def _node_id(config: ServerConfig) -> int:
    if config.node_id is None:
        raise ConfigError("node.id is missing", hint="give it with --node-id, 1 or more")
    return config.node_id


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


# -- running


def join(config: ServerConfig, seed: str, output: Output, *, observer: bool, restart: str) -> int:
    """Become a member of the cluster that `seed` belongs to, and run."""
    resolve = resolver(os.environ)

    async def beside(server: ControllerServer) -> None:
        await become_voter(server, resolve, output.note)

    async def run() -> int:
        async with QuorumClient((seed,), resolve=resolve) as client:
            description = await client.describe(seed)
        _format_to_join(config, description)
        known = [voter.endpoint for voter in description.voters]
        peers = tuple(dict.fromkeys((*config.peers, seed, *known)))
        member = replace(config, peers=peers)
        return await _serve(member, output, Words(restart), None if observer else beside)

    return asyncio.run(run())


def _format_to_join(config: ServerConfig, description: Description) -> None:
    """Format the directory, unless an earlier `join` has done so."""
    files, clock = OsFiles(), SystemClock()
    cluster_id = Uuid(description.cluster_id)
    try:
        with open_directory(files, config.directory, clock) as identity:
            if identity.cluster_id != cluster_id:
                raise AlreadyFormatted(
                    f"{config.directory} belongs to cluster {identity.cluster_id}, not to"
                    f" {cluster_id}",
                    hint="give an empty directory",
                )
            return
    except NotFormatted:
        pass
    node_id = _node_id(config)
    for voter in description.voters:
        if voter.key.node_id == node_id:
            key = decode_key(voter.key)
            raise NodeIdTaken(
                f"node {node_id} is a voter already, with directory {key.directory_id}",
                hint=f"choose another node id; or if its disk is lost: --replace {node_id}",
            )
    format_directory(files, config.directory, clock, cluster_id=cluster_id, node_id=node_id)


@dataclass(frozen=True, slots=True)
class Words:
    """What a server says when it begins: how to start it again, and how others join."""

    restart: str
    invites: bool = False


def serve(config: ServerConfig, output: Output, words: Words) -> int:
    """Run a controller until it is told to stop: SIGTERM and SIGINT do so in order, a second one at
    once.
    """
    return asyncio.run(_serve(config, output, words))


@dataclass(slots=True)
class _Signals:
    """Stops a server at the first signal and the process at the second."""

    server: ControllerServer
    exit_code: int = OK
    asked: bool = False

    def install(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop, OK)
        loop.add_signal_handler(signal.SIGINT, self._stop, INTERRUPTED)

    def _stop(self, exit_code: int) -> None:
        if self.asked:
            os._exit(INTERRUPTED)
        self.asked, self.exit_code = True, exit_code
        self.server.stop()


def _application(config: ServerConfig) -> MakeApplication:
    def make(identity: Identity) -> Application:
        if config.keeps_journal:
            return JournalApplication()
        return MetadataService(identity.key.node_id, identity.cluster_id, config.settings)

    return make


async def _serve(
    config: ServerConfig, output: Output, words: Words, beside: Beside | None = None
) -> int:
    try:
        async with open_controller(config, _application(config)) as server:
            signals = _Signals(server)
            signals.install()
            spare_the_loop()
            _announce(server, output, words)
            await server.run(beside)
            return signals.exit_code
    except* InvariantViolation as broken:
        _die(broken)
    except* KraftError as failed:
        raise _leaf(failed) from None
    return OK


def _leaf(group: BaseExceptionGroup[KraftError]) -> KraftError:
    first = group.exceptions[0]
    return _leaf(first) if isinstance(first, BaseExceptionGroup) else first


def _die(broken: BaseException) -> None:
    """At once: nothing that could still be flushed, closed or answered can be trusted."""
    logger.critical("a rule of this program does not hold; the process ends", exc_info=broken)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(BROKEN_INVARIANT_EXIT_CODE)


def _announce(server: ControllerServer, output: Output, words: Words) -> None:
    identity, address = server.identity, server.address
    key = identity.key
    lines = [
        f"cluster    {identity.cluster_id}",
        f"node       {key.node_id}, directory id {key.directory_id}",
        f"listening  {address.endpoint}",
        *([f"metrics    http://{address.metrics}/metrics"] if address.metrics else []),
        f"restart    {words.restart}",
    ]
    if words.invites:
        lines.append(
            f"others     kraftctl quorum join {address.endpoint} --id N --dir DIR"
            " --listen HOST:PORT"
        )
    output.show(
        {
            "cluster_id": str(identity.cluster_id),
            "node_id": key.node_id,
            "directory_id": str(key.directory_id),
            "endpoint": address.endpoint,
            "metrics": address.metrics,
            "pid": os.getpid(),
        },
        "\n".join(lines),
    )


# -- asking a quorum that runs


def status(bootstrap: Sequence[str], output: Output, *, timeout_ms: int) -> int:
    """Who leads and what each controller believes."""

    async def act(client: QuorumClient) -> int:
        found = await read_status(client)
        output.warnings.extend(found.problems)
        output.show(status_json(found), status_text(found))
        return OK if found.healthy else UNHEALTHY

    return _with_client(bootstrap, timeout_ms, act)


def add(address: str, bootstrap: Sequence[str], output: Output, *, timeout_ms: int) -> int:
    """Make the observer at an address a voter."""

    async def act(client: QuorumClient) -> int:
        leader = await client.find_leader()
        newcomer = await client.describe(address)
        voter = Voter(decode_key(newcomer.node), address)
        await client.add_voter_in_time(Uuid(leader.cluster_id), voter)
        output.show(
            {"added": str(voter.key), "endpoint": address},
            f"{voter.key} at {address} is a voter;"
            f" undo: {PROGRAM} remove {voter.key} -b {','.join(bootstrap)}",
        )
        return OK

    return _with_client(bootstrap, timeout_ms, act)


def remove(name: str, bootstrap: Sequence[str], output: Output, *, timeout_ms: int) -> int:
    """Take a voter out: by node id, or by node id and directory id (`101:4vXb...`)."""

    async def act(client: QuorumClient) -> int:
        leader = await client.find_leader()
        key = _find_voter(leader, name)
        await client.remove_voter(leader.header.leader.endpoint, Uuid(leader.cluster_id), key)
        output.show(
            {"removed": str(key)},
            f"{key} is no longer a voter; it goes on as an observer until it is stopped",
        )
        return OK

    return _with_client(bootstrap, timeout_ms, act)


def _find_voter(leader: Description, name: str) -> ReplicaKey:
    keys = [decode_key(voter.key) for voter in leader.voters]
    for key in keys:
        if name in (str(key), str(key.node_id)):
            return key
    raise VoterUnknown(f"{name} is no voter", hint=f"the voters are {', '.join(map(str, keys))}")


class VoterUnknown(KraftError):
    """There is nobody of that name."""


def propose(
    values: Sequence[bytes], bootstrap: Sequence[str], output: Output, *, timeout_ms: int
) -> int:
    """Append records together, and wait until they are committed."""

    async def act(client: QuorumClient) -> int:
        leader = await client.find_leader()
        endpoint = leader.header.leader.endpoint
        offset = await client.propose(endpoint, Uuid(leader.cluster_id), values)
        last = offset + len(values) - 1
        output.show(
            {"base_offset": offset, "last_offset": last},
            f"committed at {offset}" if last == offset else f"committed at {offset} to {last}",
        )
        return OK

    return _with_client(bootstrap, timeout_ms, act)


def _with_client(
    bootstrap: Sequence[str],
    timeout_ms: int,
    act: Callable[[QuorumClient], Coroutine[None, None, int]],
) -> int:
    async def run() -> int:
        resolve = resolver(os.environ)
        async with QuorumClient(bootstrap, resolve=resolve, timeout_ms=timeout_ms) as client:
            return await act(client)

    return asyncio.run(run())
