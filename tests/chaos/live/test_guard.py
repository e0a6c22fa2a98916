import signal
from pathlib import Path

from chaos.live import guard, leftovers
from tests.chaos.live.test_leftovers import sleeper


def test_when_the_harness_is_gone_its_paused_nodes_go(tmp_path: Path) -> None:
    with sleeper(tmp_path) as node:
        node.send_signal(signal.SIGSTOP)
        watching = guard.start(str(tmp_path))
        assert node.poll() is None
        guard.finish(watching)  # as the end of the harness, it closes the pipe
        assert node.wait(40) == -signal.SIGKILL
        assert not leftovers.find(str(tmp_path))
