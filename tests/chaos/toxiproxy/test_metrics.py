"""/metrics, which is there only if it was asked for."""

import json
import subprocess
import sys
import urllib.request
from functools import partial

from tests.chaos.toxiproxy.sockets import Echo, dial, read
from tests.waiting import wait_until


def get(url: str, body: bytes | None = None) -> str:
    with urllib.request.urlopen(url, body, timeout=40) as answer:  # noqa: S310 - our own server
        text: str = answer.read().decode()
        return text


def shows(url: str, line: str) -> bool:
    return line in get(url)


def test_bytes_are_counted_when_a_link_ends(echo: Echo) -> None:
    command = [sys.executable, "-P", "-m", "chaos.toxiproxy", "--port", "0", "--proxy-metrics"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = f"http://{json.loads(process.stdout.readline())['address']}"
            body = {"name": "one", "listen": "127.0.0.1:0", "upstream": echo.address}
            listen = json.loads(get(f"{url}/proxies", json.dumps(body).encode()))["listen"]
            with dial(listen) as client:
                client.sendall(b"hello")
                assert read(client, 5) == b"hello"
                assert 'proxy="one"' not in get(f"{url}/metrics")
            labels = f'direction="upstream",listener="{listen}",proxy="one"'
            for word in ("received", "sent"):
                line = f'toxiproxy_proxy_{word}_bytes_total{{{labels},upstream="{echo.address}"}} 5'
                wait_until(partial(shows, f"{url}/metrics", line), line)
        finally:
            process.terminate()
            assert process.wait(40) == 0
