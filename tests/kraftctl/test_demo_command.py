import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kraftctl.conftest import Ran, invoke
from tests.kraftctl.processes import is_alive, processes_below
from tests.kraftctl.test_schema_command import check
from tests.waiting import wait_until


def test_the_demo_is_explained() -> None:
    ran = invoke("demo", "--help")
    assert ran.code == 0
    assert "kill" in ran.out


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found by /proc")
def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    names = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
    places = {name: tmp_path / name.lower() for name in names}
    for place in places.values():
        place.mkdir()
    begun: set[int] = set()
    with subprocess.Popen(
        [sys.executable, "-m", "kraftctl", "demo", "--no-spark", "-o", "json"],
        env=os.environ | {name: str(place) for name, place in places.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:

        def has_ended() -> bool:
            begun.update(processes_below(process.pid))
            return process.poll() is not None

        wait_until(has_ended, "the demo is over", 200)
        out, _ = process.communicate()
    ran = Ran(process.returncode, out, "")
    check(ran, "demo")
    assert (ran.code, ran.pick("verdict"), ran.pick("left_running")) == (0, "PASS", [])
    assert len(begun) >= 9  # six nodes, and three of them anew
    assert list(filter(is_alive, begun)) == []
    left = {name: os.listdir(place) for name, place in places.items()}
    assert left == {name: [] for name in names}, json.dumps(left)
