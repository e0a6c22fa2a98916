"""An error that does not name the way out gets one."""

from pathlib import Path

from kraftctl.hints import way_out
from kraftlog.errors import (
    ErrorCode,
    KraftError,
    NetworkError,
    TopicExists,
    UnknownTopicOrPartition,
)
from tests.kraftctl.conftest import Run, invoke
from tests.kraftctl.test_supervisor import made


def test_what_an_error_says_itself_comes_first() -> None:
    assert way_out(TopicExists("t", hint="take another"), down=None) == "take another"
    assert "--if-not-exists" in way_out(TopicExists("t"), down=None)
    assert way_out(UnknownTopicOrPartition("t"), down=None).startswith("kraftctl topic ls")
    assert way_out(KraftError("who knows"), down=None) == ""


def test_hints_of_clients_give_way_to_those_of_commands() -> None:
    error = KraftError("5 is too far", hint="seek", code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert way_out(error, down=None).startswith("kraftctl topic offsets")


def test_a_cluster_that_is_down_is_to_be_started_whoever_did_not_answer() -> None:
    found = way_out(NetworkError("no answer", hint="is it running?"), down="dev")
    assert found == "the local cluster dev does not run; start it: kraftctl up -d"
    assert way_out(TopicExists("t", hint="take another"), down="dev") == "take another"


def test_commands_say_so(tmp_path: Path) -> None:
    data = tmp_path / "kraftlog"
    (data / "clusters").mkdir(parents=True)
    made(data / "clusters" / "dev")
    (data / "current").write_text("dev\n")
    env = {"XDG_DATA_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    for command in ("topic ls", "node ls", "quorum step-down", "meta ls", "produce t --value x"):
        ran = invoke(*command.split(), "--timeout", "200ms", env=env)
        assert ran.code == 4
        assert ran.err.splitlines()[-1].endswith("dev does not run; start it: kraftctl up -d")
    seen = invoke("status", "--timeout", "30s", env=env)
    assert seen.code == 4
    assert "RED because: the local cluster dev does not run   try: kraftctl up -d" in seen.out
    assert invoke("status", "-b", "127.0.0.1:1", "--timeout", "1s", env=env).code == 4


def test_errors_of_a_cluster_name_the_next_command(kraftctl: Run, topic: str) -> None:
    for line, code, hint in (
        (f"topic create {topic}", 6, "--if-not-exists"),
        ("topic create many -r 99", 2, "kraftctl node ls"),
        ("topic create none -p 0", 2, "-p"),
        ("topic describe nobody", 5, "kraftctl topic ls"),
        ("node fence 77", 5, "kraftctl node ls"),
        (f"partition reassign {topic}:0 --to 77", 2, "kraftctl node ls"),
        (f"topic trim {topic} --before 5 -y", 2, "kraftctl topic offsets"),
        (f"produce {topic} --partition 77 --value x", 2, "use 0 to"),
        (f"config unset topic:{topic} retention.sm", 2, "did you mean retention.ms?"),
        (f"config unset topic:{topic} zzz", 2, f"kraftctl config get topic:{topic} --all"),
    ):
        ran = kraftctl(*line.split())
        assert (ran.code, hint in ran.err.splitlines()[-1]) == (code, True), f"{line}: {ran.err}"
