"""The wrapper: typed errors for what toxiproxy-python hides, and for what would kill a server."""

import os
import threading
from typing import cast

import pytest

from chaos.toxiproxy.wrapper import Backend, ToxiproxyRefused, ToxiproxyUnreachable, ToxiServer
from kraftlog.errors import ConfigError
from tests.chaos.toxiproxy.sockets import Echo, dial, read
from tests.chaos.toxiproxy.test_collection import DEADLY
from tests.chaos.toxiproxy.test_real import is_gone
from tests.waiting import wait_until


def test_there_are_two_backends() -> None:
    with pytest.raises(ConfigError, match="no backend 'netem'"):
        ToxiServer.start(cast("Backend", "netem"))


@pytest.mark.parametrize(("kind", "attributes"), DEADLY)
def test_what_kills_the_real_server_does_not_reach_it(
    server: ToxiServer, echo: Echo, kind: str, attributes: dict[str, int]
) -> None:
    server.create("one", echo.address)
    with pytest.raises(ConfigError, match=kind):
        server.add_toxic("one", kind, "upstream", toxic=None, toxicity=1.0, **attributes)
    assert server.toxics("one") == {}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("rust", {}),
        ("latency", {"stream": "sideways"}),
        ("latency", {"toxicity": 1.5}),
        ("latency", {"delay": 1}),
        ("latency", {"latency": 2**63}),
        ("latency", {"latency": 1.5}),
    ],
)
def test_a_toxic_that_is_none(
    server: ToxiServer, echo: Echo, kind: str, given: dict[str, object]
) -> None:
    server.create("one", echo.address)
    with pytest.raises(ConfigError):
        server.add_toxic("one", kind, **given)  # type: ignore[arg-type]  # wrong on purpose
    assert server.toxics("one") == {}


def test_names_and_addresses_are_checked(server: ToxiServer, echo: Echo) -> None:
    with pytest.raises(ConfigError, match="invalid name 'a/b'"):
        server.create("a/b", echo.address)
    for address in ("nonsense", "127.0.0.1:0", ":9092", "127.0.0.1:http"):
        with pytest.raises(ConfigError, match="is no address"):
            server.create("one", address)
    with pytest.raises(ConfigError, match="no proxy 'one'"):
        server.cut("one")


def test_twice_is_an_error_with_a_name(server: ToxiServer, echo: Echo) -> None:
    server.create("one", echo.address)
    with pytest.raises(ConfigError, match="a proxy 'one' already"):
        server.create("one", echo.address)
    server.add_toxic("one", "noop", toxic="t")
    with pytest.raises(ToxiproxyRefused, match="409: toxic already exists"):
        server.add_toxic("one", "noop", toxic="t")
    with pytest.raises(ToxiproxyRefused, match="404: toxic not found"):
        server.remove_toxic("one", "u")


def test_two_servers_in_one_process_and_threads(server: ToxiServer, echo: Echo) -> None:
    with ToxiServer.start("embedded") as second:
        servers = {"first": server, "second": second}

        def work(name: str) -> None:
            for number in range(10):
                servers[name].create(f"{name}{number}", echo.address)
                servers[name].add_toxic(f"{name}{number}", "noop")

        threads = [threading.Thread(target=work, args=(name,)) for name in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, each in servers.items():
            assert [each.toxics(f"{name}{number}") for number in range(10)] == [
                {"noop_downstream": "noop"}
            ] * 10


def test_proxies_of_the_environment_are_not_used(
    server: ToxiServer, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with dial(server.create("one", echo.address)) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"


def test_a_server_that_is_gone() -> None:
    server = ToxiServer.start("embedded")
    directory = server._directory
    server.close()
    wait_until(lambda: is_gone(server.pid), "its end")
    assert not os.path.exists(directory)
    with pytest.raises(ToxiproxyUnreachable, match="no answer to POST"):
        server.reset()


@pytest.mark.slow
def test_a_seed_replays_its_dice(echo: Echo) -> None:
    def strikes(seed: int) -> list[bool]:
        """Which of some connections a toxic takes, one after the other."""
        with ToxiServer.start("embedded", seed=seed) as server:
            listen = server.create("one", echo.address)
            server.add_toxic("one", "limit_data", toxicity=0.5, bytes=1)
            found = []
            for _ in range(16):
                with dial(listen) as client:
                    client.sendall(b"two")
                    found.append(read(client, 3) == b"t")
            return found

    first = strikes(1)
    assert strikes(1) == first
    assert strikes(2) != first
