import subprocess
import sys

from chaos.toxiproxy.cli import parse
from tests.chaos.toxiproxy.sockets import Upstream


def test_defaults_are_those_of_toxiproxy() -> None:
    options = parse([])
    assert (options.host, options.port, options.proxy_metrics) == ("127.0.0.1", 8474, False)


def test_a_port_that_is_taken_is_named(upstream: Upstream) -> None:
    port = upstream.address.rpartition(":")[2]
    command = [sys.executable, "-P", "-m", "chaos.toxiproxy", "--port", port]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"cannot listen on 127.0.0.1:{port}: ")
    assert answer.stderr.count("\n") == 1
