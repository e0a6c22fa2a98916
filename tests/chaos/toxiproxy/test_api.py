"""Toxiproxy's own tests of its HTTP API, against both servers."""

import pytest

from chaos.toxiproxy.bodies import Json
from chaos.toxiproxy.wrapper import ToxiServer
from tests.chaos.toxiproxy.sockets import Answer, Echo, call, dial, is_refused, read


def proxy(name: str, **fields: Json) -> dict[str, Json]:
    return {"name": name, "listen": "127.0.0.1:0", "upstream": "127.0.0.1:20001", **fields}


def create(server: ToxiServer, name: str, **fields: Json) -> dict[str, Json]:
    answer = call(server, "POST", "/proxies", proxy(name, **fields))
    assert answer.status == 201, answer
    return answer.json


def add(server: ToxiServer, proxy_name: str, **fields: Json) -> Answer:
    return call(server, "POST", f"/proxies/{proxy_name}/toxics", fields)


def error(answer: Answer) -> tuple[int, Json]:
    assert answer.text.endswith("\n")
    assert answer.json["status"] == answer.status
    return answer.status, answer.json["error"]


# -- the server


def test_every_answer_has_a_request_id(server: ToxiServer) -> None:
    first, second = (call(server, "GET", "/version") for _ in range(2))
    assert first.headers["X-Toxiproxy-Request-Id"] != second.headers["X-Toxiproxy-Request-Id"]


def test_version(server: ToxiServer) -> None:
    answer = call(server, "GET", "/version")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json;charset=utf-8"
    assert answer.text == f'{{"version": "{server.version()}"}}\n'


def test_browsers_are_not_allowed(server: ToxiServer) -> None:
    refused = call(server, "GET", "/proxies", User_Agent="Mozilla/5.0 (Linux)")
    assert (refused.status, refused.text) == (403, "User agent not allowed\n")
    assert call(server, "GET", "/proxies", User_Agent="kraftlog/1").status == 200


@pytest.mark.parametrize("path", ["/", "/proxies/", "/nothing", "/proxies/a/b", "/metrics"])
def test_unknown_path(server: ToxiServer, path: str) -> None:
    answer = call(server, "GET", path)
    assert (answer.status, answer.text) == (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/proxies"), ("GET", "/reset"), ("PUT", "/proxies/a"), ("POST", "/version")],
)
def test_wrong_method(server: ToxiServer, method: str, path: str) -> None:
    answer = call(server, method, path)
    assert (answer.status, answer.text) == (405, "")


# -- proxies


def test_no_proxies(server: ToxiServer) -> None:
    answer = call(server, "GET", "/proxies")
    assert (answer.status, answer.json) == (200, {})


def test_create_and_get(server: ToxiServer) -> None:
    made = create(server, "one")
    assert made["listen"] != "127.0.0.1:0"
    assert made == {
        "name": "one",
        "listen": made["listen"],
        "upstream": "127.0.0.1:20001",
        "enabled": True,
        "Logger": {},
        "toxics": [],
    }
    assert call(server, "GET", "/proxies/one").json == made
    assert call(server, "GET", "/proxies").json == {"one": made}


@pytest.mark.parametrize(
    ("body", "missing"),
    [({"upstream": "127.0.0.1:1"}, "name"), ({"name": "one"}, "upstream"), ({}, "name")],
)
def test_missing_field(server: ToxiServer, body: Json, missing: str) -> None:
    answer = call(server, "POST", "/proxies", body)
    assert error(answer) == (400, f"missing required field: {missing}")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"name": 1}',
        b'{"name": "a", "upstream": "b:1", "enabled": "yes"}',
        b'"text"',
        b"NaN",
        b"[" * 100_000,
        b'{"name": ' + b"9" * 5_000 + b"}",
    ],
)
def test_bad_body(server: ToxiServer, body: bytes) -> None:
    for path in ("/proxies", "/populate"):
        answer = call(server, "POST", path, b"{}" if (path, body) == ("/populate", b"[]") else body)
        assert answer.status == 400
        assert str(answer.json["error"]).startswith("bad request body: ")
    assert call(server, "GET", "/proxies").json == {}


def test_a_body_is_read_as_go_reads_it(server: ToxiServer) -> None:
    body = b'{"NAME": "one", "Upstream": "127.0.0.1:1", "odd": [], "listen": null} {"name": 7}'
    answer = call(server, "POST", "/proxies", body, Content_Type="text/plain")
    assert (answer.status, answer.json["name"]) == (201, "one")


def test_names_are_unique(server: ToxiServer) -> None:
    create(server, "one")
    answer = call(server, "POST", "/proxies", proxy("one"))
    assert error(answer) == (409, "proxy already exists")


def test_create_disabled(server: ToxiServer) -> None:
    made = create(server, "one", listen="localhost:0", enabled=False)
    assert (made["listen"], made["enabled"]) == ("localhost:0", False)
    assert call(server, "POST", "/proxies/one", {"enabled": True}).json["enabled"] is True


def test_delete(server: ToxiServer) -> None:
    made = create(server, "one")
    answer = call(server, "DELETE", "/proxies/one")
    assert (answer.status, answer.text) == (204, "")
    assert is_refused(str(made["listen"]))
    assert error(call(server, "DELETE", "/proxies/one")) == (404, "proxy not found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("POST", ""),
        ("PATCH", ""),
        ("GET", "/toxics"),
        ("POST", "/toxics"),
        ("GET", "/toxics/t"),
        ("PATCH", "/toxics/t"),
        ("DELETE", "/toxics/t"),
    ],
)
def test_of_no_proxy(server: ToxiServer, method: str, path: str) -> None:
    answer = call(server, method, f"/proxies/none{path}", {})
    assert error(answer) == (404, "proxy not found")


def test_a_port_that_is_taken_and_free_again(server: ToxiServer) -> None:
    listen = create(server, "one")["listen"]
    answer = call(server, "POST", "/proxies", proxy("two", listen=listen))
    assert error(answer) == (500, f"listen tcp {listen}: bind: address already in use")
    call(server, "DELETE", "/proxies/one")
    assert create(server, "two", listen=listen)["listen"] == listen


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "127.0.0.1:x", "a:b:c"])
def test_an_address_that_is_none(server: ToxiServer, listen: str) -> None:
    assert call(server, "POST", "/proxies", proxy("one", listen=listen)).status == 500
    assert call(server, "GET", "/proxies").json == {}


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_disable_and_enable(server: ToxiServer, echo: Echo, method: str) -> None:
    made = create(server, "one", upstream=echo.address)
    add(server, "one", type="noop")
    listen = str(made["listen"])
    for _ in range(3):
        with dial(listen) as client:
            client.sendall(b"hello")
            assert read(client, 5) == b"hello"
            off = call(server, method, "/proxies/one", {"enabled": False}).json
            assert (off["enabled"], off["listen"]) == (False, listen)
            assert read(client, 1) == b""
        assert is_refused(listen)
        on = call(server, method, "/proxies/one", {"enabled": True}).json
        assert (on["enabled"], on["listen"]) == (True, listen)
        assert len(on["toxics"]) == 1  # type: ignore[arg-type]  # a list, as the others are


def test_reset(server: ToxiServer) -> None:
    create(server, "one")
    create(server, "two", enabled=False)
    add(server, "one", type="latency", attributes={"latency": 100})
    answer = call(server, "POST", "/reset")
    assert (answer.status, answer.text) == (204, "")
    found = call(server, "GET", "/proxies").json
    for name in ("one", "two"):
        shown = found[name]
        assert isinstance(shown, dict)
        assert (shown["enabled"], shown["toxics"]) == (True, [])


# -- populate


def test_populate(server: ToxiServer) -> None:
    wanted: list[Json] = [proxy("one"), proxy("two", enabled=False)]
    answer = call(server, "POST", "/populate", wanted)
    assert answer.status == 201
    made = answer.json["proxies"]
    assert isinstance(made, list)
    shown = [(each["name"], each["enabled"]) for each in made if isinstance(each, dict)]
    assert shown == [("one", True), ("two", False)]


def test_populate_nothing(server: ToxiServer) -> None:
    assert call(server, "POST", "/populate", []).json == {"proxies": None}


def test_populate_keeps_what_is_equal_and_replaces_what_is_not(server: ToxiServer) -> None:
    listens = {name: create(server, name)["listen"] for name in ("same", "other")}
    for name in listens:
        add(server, name, type="noop")
    wanted: list[Json] = [
        proxy("same", listen=listens["same"]),
        proxy("other", upstream="127.0.0.1:2"),
    ]
    assert call(server, "POST", "/populate", wanted).status == 201
    toxics = {name: call(server, "GET", f"/proxies/{name}/toxics").text for name in listens}
    assert '"noop_downstream"' in toxics["same"]
    assert toxics["other"] == "[]"


def test_populate_looks_at_all_names_first(server: ToxiServer) -> None:
    answer = call(server, "POST", "/populate", [proxy("one"), proxy("")])
    assert answer.status == 400
    assert answer.json == {
        "error": "missing required field: name at proxy 2",
        "status": 400,
        "proxies": None,
    }
    assert call(server, "GET", "/proxies").json == {}


def test_populate_stops_at_the_first_that_fails(server: ToxiServer) -> None:
    listen = create(server, "zero")["listen"]
    wanted: list[Json] = [proxy("one"), proxy("two", listen=listen), proxy("three")]
    answer = call(server, "POST", "/populate", wanted)
    assert answer.status == 500
    assert answer.json["error"] == f"listen tcp {listen}: bind: address already in use"
    made = answer.json["proxies"]
    assert isinstance(made, list)
    assert len(made) == 1
    assert set(call(server, "GET", "/proxies").json) == {"zero", "one"}


# -- toxics


def test_add_and_get(server: ToxiServer) -> None:
    create(server, "one")
    answer = add(server, "one", type="latency", name="slow", attributes={"latency": 100})
    assert answer.status == 200
    shown = {
        "attributes": {"latency": 100, "jitter": 0},
        "name": "slow",
        "type": "latency",
        "stream": "downstream",
        "toxicity": 1,
    }
    assert answer.json == shown
    assert call(server, "GET", "/proxies/one/toxics/slow").json == shown
    assert call(server, "GET", "/proxies/one").json["toxics"] == [shown]


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("bandwidth", {"rate": 0}),
        ("slow_close", {"delay": 0}),
        ("timeout", {"timeout": 0}),
        ("reset_peer", {"timeout": 0}),
        ("limit_data", {"bytes": 0}),
        ("noop", {}),
    ],
)
def test_attributes_are_zero_when_unset(
    server: ToxiServer, kind: str, attributes: dict[str, Json]
) -> None:
    create(server, "one")
    assert add(server, "one", type=kind).json["attributes"] == attributes


def test_default_names(server: ToxiServer) -> None:
    create(server, "one")
    streams = ("upstream", "downstream", "UPSTREAM")
    names = [add(server, "one", type="noop", stream=stream).json["name"] for stream in streams]
    assert names == ["noop_upstream", "noop_downstream", "noop_UPSTREAM"]
    assert call(server, "GET", "/proxies/one/toxics").text.count('"noop"') == 3


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_toxics_have_names_of_their_own_in_both_directions(server: ToxiServer, stream: str) -> None:
    create(server, "one")
    assert add(server, "one", type="noop", name="t").status == 200
    twice = add(server, "one", type="latency", name="t", stream=stream)
    assert error(twice) == (409, "toxic already exists")
    assert add(server, "one", type="noop", name="u").status == 200


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "rust"}, "invalid toxic type"),
        ({}, "invalid toxic type"),
        (
            {"type": "noop", "stream": "sideways"},
            "stream was invalid, can be either upstream or downstream",
        ),
    ],
)
def test_a_toxic_that_is_none(server: ToxiServer, fields: dict[str, Json], message: str) -> None:
    create(server, "one")
    assert error(add(server, "one", **fields)) == (400, message)
    assert call(server, "GET", "/proxies/one/toxics").text == "[]"


@pytest.mark.parametrize("value", ["100", 1.5, True, [], 2**63])
def test_an_attribute_is_an_integer(server: ToxiServer, value: Json) -> None:
    create(server, "one")
    status, message = error(add(server, "one", type="latency", attributes={"latency": value}))
    assert status == 400
    assert str(message).startswith("bad request body: ")


@pytest.mark.parametrize("toxicity", [0, 0.2, 0.123456789, 1, -1, 7])
def test_toxicity_is_a_float32_and_may_be_anything(server: ToxiServer, toxicity: float) -> None:
    create(server, "one")
    shown = add(server, "one", type="noop", toxicity=toxicity).json["toxicity"]
    assert shown == pytest.approx(toxicity, rel=1e-6)
    assert len(str(shown)) <= 10


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_an_update_merges(server: ToxiServer, method: str) -> None:
    create(server, "one")
    add(server, "one", type="latency", name="t", attributes={"latency": 1, "jitter": 2})
    path = "/proxies/one/toxics/t"
    assert call(server, method, path, {"toxicity": 0.5}).json["toxicity"] == 0.5
    answer = call(server, method, path, {"attributes": {"Latency": 9}})
    assert (answer.status, answer.json["toxicity"]) == (200, 0.5)
    assert answer.json["attributes"] == {"latency": 9, "jitter": 2}
    assert call(server, method, path, {"attributes": {"latency": "x"}}).status == 400
    assert call(server, "GET", path).json["attributes"] == {"latency": 9, "jitter": 2}


def test_remove(server: ToxiServer) -> None:
    create(server, "one")
    add(server, "one", type="noop", name="t")
    answer = call(server, "DELETE", "/proxies/one/toxics/t")
    assert (answer.status, answer.text) == (204, "")
    for method in ("GET", "PATCH", "DELETE"):
        gone = call(server, method, "/proxies/one/toxics/t", {})
        assert error(gone) == (404, "toxic not found")
