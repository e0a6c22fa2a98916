import asyncio

import pytest

from kraftlog._check import InvariantViolation
from kraftlog.errors import ConfigError
from kraftlog.metrics import REQUEST_BYTES_MAX, Registry, labelled, serve_metrics
from tests.loops import run


def test_the_text_is_what_prometheus_reads() -> None:
    registry = Registry()
    commits = registry.counter("commits_total", "Commits.")
    refused = registry.counters("refused_total", "Refused.", label="why")
    registry.gauge("epoch", "The epoch.", lambda: 7)
    registry.gauge("lag", "Lag.", lambda: [({"node": "1"}, 0.5), ({"node": "2"}, 3)])
    seconds = registry.histogram("seconds", "Time.", (0.1, 1))
    commits.add()
    commits.add(2)
    refused["busy"].add()
    for value in (0.05, 0.1, 0.5, 9):
        seconds.observe(value)
    assert registry.text() == (
        "# HELP commits_total Commits.\n"
        "# TYPE commits_total counter\n"
        "commits_total 3\n"
        "# HELP epoch The epoch.\n"
        "# TYPE epoch gauge\n"
        "epoch 7\n"
        "# HELP lag Lag.\n"
        "# TYPE lag gauge\n"
        'lag{node="1"} 0.5\n'
        'lag{node="2"} 3\n'
        "# HELP refused_total Refused.\n"
        "# TYPE refused_total counter\n"
        'refused_total{why="busy"} 1\n'
        "# HELP seconds Time.\n"
        "# TYPE seconds histogram\n"
        'seconds_bucket{le="0.1"} 2\n'
        'seconds_bucket{le="1"} 3\n'
        'seconds_bucket{le="+Inf"} 4\n'
        "seconds_sum 9.65\n"
        "seconds_count 4\n"
    )


def test_a_label_may_hold_anything() -> None:
    assert labelled({"b": 'a"b\\c\nd', "a": ""}) == r'{a="",b="a\"b\\c\nd"}'


def test_a_counter_that_somebody_keeps() -> None:
    registry = Registry()
    registry.counter_of("kept_total", "Kept.", lambda: 5)
    assert "# TYPE kept_total counter\nkept_total 5\n" in registry.text()
    assert registry.names() == ["kept_total"]


def test_a_counter_never_falls_and_a_name_is_used_once() -> None:
    registry = Registry()
    counter = registry.counter("x", "X.")
    with pytest.raises(InvariantViolation, match="goes down"):
        counter.add(-1)
    with pytest.raises(InvariantViolation, match="two metrics of one name"):
        registry.counter("x", "X.")


async def fetch(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def test_they_are_shown_over_http() -> None:
    async def story() -> None:
        registry = Registry()
        registry.counter("x_total", "X.").add()
        async with serve_metrics(registry, "127.0.0.1:0") as port:
            good = await fetch(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            head, _, body = good.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"Content-Length: %d\r\n" % len(body) in head
            assert body == registry.text().encode()
            assert b" 404 " in await fetch(port, b"GET / HTTP/1.1\r\n\r\n")
            assert b" 404 " in await fetch(port, b"POST /metrics HTTP/1.1\r\n\r\n")
            assert b" 400 " in await fetch(port, b"\x00\x01garbage")
            assert b" 400 " in await fetch(port, b"GET " + b"x" * (REQUEST_BYTES_MAX * 2))
            with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
                async with serve_metrics(registry, f"127.0.0.1:{port}"):
                    pass

    run(story())
