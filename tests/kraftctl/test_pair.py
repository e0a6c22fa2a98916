import os
import tomllib
from pathlib import Path

import pytest

from kraftctl.exit_codes import NotFound
from kraftctl.output import Output
from kraftctl.pair import BROKER, CONTROLLER, run_pair, split_config
from kraftctl.places import Places
from kraftctl.session import Session
from kraftlog.errors import ConfigError

TEXT = """
"quorum.peers" = "127.0.0.1:9101"
timing.profile = "fast"
[role.controller]
node.id = 101
log.dirs = "/c"
[role.broker]
"node.id" = 1
timing.profile = "kafka"
"""


def test_each_role_gets_what_is_for_both_and_what_is_for_it(tmp_path: Path) -> None:
    path = tmp_path / "both.toml"
    path.write_text(TEXT)
    files = split_config(str(path))
    assert tomllib.loads(files[CONTROLLER]) == {
        "quorum.peers": "127.0.0.1:9101",
        "timing.profile": "fast",
        "node.id": 101,
        "log.dirs": "/c",
    }
    assert tomllib.loads(files[BROKER])["timing.profile"] == "kafka"


@pytest.mark.parametrize(
    ("text", "why"),
    [("x = ", "is not TOML"), ("node.id = 1", "what each of the two"), ("role = 1", "each")],
)
def test_a_file_that_does_not_tell_them_apart_is_refused(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "both.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=why):
        split_config(str(path))
    with pytest.raises(ConfigError, match="No such file"):
        split_config(str(tmp_path / "nothing"))


def test_when_one_ends_the_other_is_stopped_and_it_says_which(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "both.toml"
    path.write_text(f"""
timing.profile = "fast"
[role.controller]
node.id = 101
log.dirs = "{tmp_path}/nowhere"
[role.broker]
node.id = 1
listeners = "127.0.0.1:0"
log.dirs = "{tmp_path}/b"
cluster.id = "4nL2Qf8T3aXkzM0vJtB1wA"
quorum.peers = "127.0.0.1:1"
""")
    session = Session(Output("node run"), Places.of(os.environ), "10s")
    with pytest.raises(NotFound, match="the controller has ended with 5, and the other was stop"):
        run_pair(session, str(path))
    assert "process" in capfd.readouterr().out
