"""Where the embedded server differs on purpose: it refuses what would kill the real one."""

from collections.abc import Iterator

import pytest

from chaos.toxiproxy.bodies import Json
from chaos.toxiproxy.wrapper import ToxiServer
from tests.chaos.toxiproxy.sockets import Echo, call, dial, read

DEADLY: tuple[tuple[str, dict[str, int]], ...] = (
    ("bandwidth", {"rate": -1}),
    ("slicer", {}),
    ("slicer", {"average_size": 1, "size_variation": 5}),
    ("latency", {"jitter": 2**63 - 1}),
)


@pytest.fixture(scope="module")
def embedded() -> Iterator[ToxiServer]:
    with ToxiServer.start("embedded") as server:
        yield server


@pytest.mark.parametrize(("kind", "attributes"), DEADLY)
def test_what_kills_the_real_server_is_refused(
    embedded: ToxiServer, echo: Echo, kind: str, attributes: dict[str, int]
) -> None:
    listen = embedded.create("one", echo.address)
    body: dict[str, Json] = {"type": kind, "attributes": {**attributes}}
    answer = call(embedded, "POST", "/proxies/one/toxics", body)
    assert answer.status == 400
    assert str(answer.json["error"]).startswith(f"{kind}: ")
    with dial(listen) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"
    embedded.delete_all()


def test_an_update_cannot_bring_it_either(embedded: ToxiServer, echo: Echo) -> None:
    embedded.create("one", echo.address)
    embedded.add_toxic("one", "bandwidth", rate=1_000)
    path = "/proxies/one/toxics/bandwidth_downstream"
    assert call(embedded, "PATCH", path, {"attributes": {"rate": -1}}).status == 400
    assert call(embedded, "GET", path).json["attributes"] == {"rate": 1_000}
    embedded.delete_all()


def test_a_name_that_could_not_be_asked_for_is_refused(embedded: ToxiServer, echo: Echo) -> None:
    body = {"name": "a/b", "upstream": echo.address}
    assert call(embedded, "POST", "/proxies", {**body}).status == 400
    embedded.create("one", echo.address)
    toxic = {"type": "noop", "name": "a/b"}
    assert call(embedded, "POST", "/proxies/one/toxics", {**toxic}).status == 400
    embedded.delete_all()
