"""Stubs come from proto/, and a stub that does not is noticed."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.tidy.source import ROOT

SCRIPT = ROOT / ".make" / "proto.py"

PLAIN = 'syntax = "proto3";\npackage kraftlog.rpc;\nmessage M { int32 x = 1; }\n'
SERVICE = (
    'syntax = "proto3";\npackage kraftlog.rpc;\nimport "kraftlog/rpc/plain.proto";\n'
    "service S { rpc Call(M) returns (M); }\n"
)


def project(root: Path, **protos: str) -> Path:
    """A project with the real script and these protos."""
    (root / ".make").mkdir()
    (root / ".make" / "proto.py").write_text(SCRIPT.read_text())
    (root / "proto/kraftlog/rpc").mkdir(parents=True)
    (root / "kraftlog/rpc").mkdir(parents=True)
    for name, text in protos.items():
        (root / "proto/kraftlog/rpc" / f"{name}.proto").write_text(text)
    return root


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / ".make/proto.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def stubs(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "kraftlog/rpc").iterdir())


def test_only_a_service_gets_a_grpc_stub(tmp_path: Path) -> None:
    root = project(tmp_path, plain=PLAIN, service=SERVICE)
    assert run(root).returncode == 0
    wanted = ["plain_pb2.py", "plain_pb2.pyi", "service_pb2.py", "service_pb2.pyi"]
    assert stubs(root) == sorted([*wanted, "service_pb2_grpc.py"])
    text = (root / "kraftlog/rpc/service_pb2.py").read_text()
    assert "from kraftlog.rpc import plain_pb2" in text


def test_check_finds_stubs_that_differ_are_missing_or_have_no_source(tmp_path: Path) -> None:
    root = project(tmp_path, plain=PLAIN, service=SERVICE)
    run(root)
    assert run(root, "--check").returncode == 0
    with (root / "kraftlog/rpc/plain_pb2.py").open("a") as stub:
        stub.write("# edited\n")
    (root / "kraftlog/rpc/service_pb2.pyi").unlink()
    (root / "kraftlog/rpc/old_pb2.py").write_text("")
    before = stubs(root)
    answer = run(root, "--check")
    assert answer.returncode != 0
    assert "kraftlog/rpc/plain_pb2.py differs" in answer.stderr
    assert "kraftlog/rpc/service_pb2.pyi is missing" in answer.stderr
    assert "kraftlog/rpc/old_pb2.py has no source" in answer.stderr
    assert stubs(root) == before  # a check never writes
    assert run(root).returncode == 0
    assert run(root, "--check").returncode == 0


def test_a_proto_that_is_wrong_fails(tmp_path: Path) -> None:
    answer = run(project(tmp_path, plain="nonsense"))
    assert answer.returncode != 0
    assert "plain.proto" in answer.stderr


def test_the_stubs_that_are_checked_in_load_under_their_own_name() -> None:
    spec = importlib.util.find_spec("kraftlog.rpc.common_pb2")
    assert spec is not None
    from kraftlog.rpc import common_pb2  # noqa: PLC0415

    error = common_pb2.Error(code=6, leader=common_pb2.LeaderHint(epoch=4))
    again = common_pb2.Error.FromString(error.SerializeToString())
    assert again == error
    assert again.HasField("leader")
    assert not again.leader.HasField("leader")
