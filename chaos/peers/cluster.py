"""Three nodes of the peer as processes: p1, p2, p3."""

import os
import signal
import time
from typing import Self

from chaos.peers.client import PeerClient, PeerStatus
from kraftlog.errors import ConfigError, TimeoutError_
from kraftlog.local.layout import CLIENTS, Layout, Member, free_port
from kraftlog.local.process import NodeProcess
from kraftlog.resolver import RESOLVE_VARIABLE

MODULE = "chaos.peers.pysyncobj_node"
ROLE = "peer"
PROFILE = "its own"
READY_SECONDS = 60.0
_POLL_SECONDS = 0.02


class PeerCluster:
    """Each node has a map of addresses in a file of its own, so that a drill can lay edges."""

    def __init__(self, directory: str, *, nodes: int = 3) -> None:
        self.directory = directory
        ports: set[int] = set()
        while len(ports) < nodes:
            ports.add(free_port(ports))
        members = [
            Member(f"p{number}", ROLE, number, port)
            for number, port in enumerate(sorted(ports), start=1)
        ]
        self.layout = Layout(directory, members, {}, PROFILE)
        self.addresses = {member.name: member.address for member in members}
        self.layout.write_resolve(CLIENTS, {})
        self._processes = {member.name: self._process(member) for member in members}

    def _process(self, member: Member) -> NodeProcess:
        others = [each for each in self.addresses.values() if each != member.address]
        data = self.layout.data_path(member)
        os.makedirs(data, exist_ok=True)
        self.layout.write_resolve(member.name, {})
        arguments = ["--own", member.address, "--peers", ",".join(others), "--directory", data]
        variables = {RESOLVE_VARIABLE: self.layout.resolve_path(member.name)}
        return NodeProcess(member.name, MODULE, arguments, self.layout.log_path(member), variables)

    @property
    def names(self) -> list[str]:
        return list(self.addresses)

    def start(self) -> None:
        """All of them; returns when one leads."""
        for process in self._processes.values():
            process.start()
        self.await_leader()

    def _find(self, name: str) -> NodeProcess:
        if name not in self._processes:
            raise ConfigError(f"there is no node {name!r}", hint=f"there are {self.names}")
        return self._processes[name]

    def pid(self, name: str) -> int:
        return self._find(name).pid

    def kill(self, name: str) -> None:
        """kill -9."""
        self._find(name).kill()

    def stop(self, name: str) -> None:
        """SIGTERM."""
        self._find(name).signal(signal.SIGTERM)
        self._find(name).wait()

    def pause(self, name: str) -> None:
        self._find(name).pause()

    def resume(self, name: str) -> None:
        self._find(name).resume()

    def restart(self, name: str) -> None:
        """On its old journal."""
        self._find(name).start()

    def logs(self, name: str) -> str:
        return self._find(name).log()

    def statuses(self, *, digested: bool = False) -> dict[str, PeerStatus]:
        """Of the nodes that answer."""
        found = {}
        for name, address in self.addresses.items():
            if self._processes[name].is_running and not self._processes[name].is_paused:
                with PeerClient([address]) as client:
                    status = client.status(digested=digested)
                if status is not None:
                    found[name] = status
        return found

    def reign(self) -> tuple[int, str] | None:
        """The highest term of which a node says that it leads it, and that node."""
        leading = [
            (status.term, name)
            for name, status in self.statuses().items()
            if status.leader == self.addresses[name]
        ]
        return max(leading, default=None)

    def await_reign(self, seconds: float = READY_SECONDS) -> tuple[int, str]:
        deadline = time.monotonic() + seconds
        while (reign := self.reign()) is None:
            self._check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError_(f"no peer leads after {seconds:g} s", hint=self.directory)
            time.sleep(_POLL_SECONDS)
        return reign

    def await_leader(self) -> str:
        return self.await_reign()[1]

    def _check_alive(self) -> None:
        """One that ended by itself never comes back: its log says why."""
        for process in self._processes.values():
            if (process.exit_code or 0) > 0:
                raise process.failure(f"ended with {process.exit_code}")

    def await_agreement(self, seconds: float = READY_SECONDS) -> str:
        """All nodes hold the same metadata; its digest. Nobody may be changing it."""
        deadline = time.monotonic() + seconds
        while True:
            statuses = self.statuses(digested=True)
            digests = {status.digest for status in statuses.values()}
            if len(statuses) == len(self.addresses) and len(digests) == 1:
                return digests.pop()
            self._check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError_(f"the peers do not agree: {statuses}", hint=self.directory)
            time.sleep(_POLL_SECONDS)

    def await_caught_up(self, seconds: float = READY_SECONDS) -> None:
        """All nodes have what any had when this began."""
        target = max((each.offset for each in self.statuses().values()), default=0)
        deadline = time.monotonic() + seconds
        while True:
            offsets = {name: each.offset for name, each in self.statuses().items()}
            if len(offsets) == len(self.addresses) and min(offsets.values()) >= target:
                return
            self._check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError_(f"the peers are not at {target}: {offsets}")
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        for process in self._processes.values():
            process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
