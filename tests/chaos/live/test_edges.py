"""Real proxies of the embedded server, before a listener of ours."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.live.backends import open_proxies
from chaos.live.edges import CLIENT, FAULTS, Edges, edge_name
from kraftlog.errors import ConfigError
from kraftlog.local import layout as layouts
from kraftlog.local.layout import BROKER, CLIENTS, CONTROLLER, Layout, free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Layout, Edges]]:
    directory: Path = tmp_path_factory.mktemp("edges")
    layout = Layout(str(directory), [], {}, "fast")
    for role in (CONTROLLER, BROKER, BROKER):
        layout.add(role, metrics=False)
    with open_proxies("embedded", 1) as (proxies, pid):
        assert pid is not None
        edges = Edges(proxies)
        edges.lay(layout)
        yield layout, edges


@pytest.fixture
def echo(laid: tuple[Layout, Edges]) -> Iterator[None]:
    """b1 listens, and greets."""
    host, port = laid[0].find("b1").address.split(":")
    with socket.create_server((host, int(port))) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def routes(layout: Layout, source: str) -> dict[str, str]:
    with open(layout.resolve_path(source), encoding="utf-8") as file:
        found: dict[str, str] = json.load(file)
    return found


def greeting(address: str) -> bytes:
    host, port = address.split(":")
    try:
        with socket.create_connection((host, int(port)), 5) as connection:
            return connection.recv(5)
    except OSError:
        return b"refused"


def test_there_is_one_proxy_for_each_directed_edge(laid: tuple[Layout, Edges]) -> None:
    layout, edges = laid
    nodes = ["c1", "b1", "b2"]
    wanted = {edge_name(one, two) for one in [*nodes, CLIENT] for two in nodes if one != two}
    assert edges.names == wanted
    assert set(edges.pairs) == {tuple(name.split("__")) for name in wanted}
    assert set(routes(layout, "c1")) == {layout.find("b1").address, layout.find("b2").address}
    assert set(routes(layout, CLIENTS)) == {layout.find(name).address for name in nodes}
    every = [to for source in (*nodes, CLIENTS) for to in routes(layout, source).values()]
    assert len(set(every)) == len(wanted)


@pytest.mark.usefixtures("echo")
def test_a_cut_edge_is_cut_and_its_neighbour_is_not(laid: tuple[Layout, Edges]) -> None:
    layout, edges = laid
    address = layout.find("b1").address
    of_controller, of_broker = routes(layout, "c1")[address], routes(layout, "b2")[address]
    edges.cut("c1", "b1")
    assert greeting(of_controller) == b"refused"
    assert greeting(of_broker) == b"hello"
    edges.restore("c1", "b1")
    assert greeting(of_controller) == b"hello"
    edges.isolate("b1", [*("c1", "b2"), CLIENT])
    assert greeting(of_broker) == b"refused"
    edges.rejoin("b1", ["c1", "b2", CLIENT])
    assert greeting(of_broker) == b"hello"


@pytest.mark.usefixtures("echo")
def test_every_fault_is_taken_and_healed(laid: tuple[Layout, Edges]) -> None:
    layout, edges = laid
    proxy = routes(layout, CLIENTS)[layout.find("b1").address]
    for fault in (*FAULTS, "cut"):
        edges.spoil(fault, CLIENT, "b1")
        edges.heal()
    wait_until(lambda: greeting(proxy) == b"hello", "the edge is as it was")


def test_what_is_not_there_is_named(laid: tuple[Layout, Edges]) -> None:
    with pytest.raises(ConfigError, match="no edge b1__b9"):
        laid[1].cut("b1", "b9")
    with pytest.raises(ConfigError, match="'rain' is no fault of an edge"):
        laid[1].spoil("rain", "c1", "b1")


def test_a_node_that_comes_later_gets_its_edges(laid: tuple[Layout, Edges]) -> None:
    layout, edges = laid
    member = layout.add(BROKER, metrics=False)
    assert set(edges.routes) == {each.address for each in layout.members if each != member}
    edges.add(layout, member)
    assert {"b3__c1", "c1__b3", "cli__b3", "b3__b2"} <= edges.names
    assert member.address in routes(layout, "b1")
    assert os.path.exists(layout.resolve_path("b3"))


def test_a_proxy_does_not_listen_where_a_node_shall_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(str(tmp_path), [], {}, "fast")
    members = [layout.add(role, metrics=False) for role in (CONTROLLER, BROKER)]
    ports = {each.port for each in members}
    others: set[int] = set()
    while len(others) < 8:
        others.add(free_port(ports | others))
    monkeypatch.setattr(layouts, "PORTS", [*ports, *others])
    with open_proxies("embedded", 1) as (proxies, _):
        edges = Edges(proxies)
        edges.lay(layout)
        taken = {int(address.rpartition(":")[2]) for address in edges.routes.values()}
    assert taken <= others
