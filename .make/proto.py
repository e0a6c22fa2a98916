"""Makes the stubs in kraftlog/rpc/ from proto/; with --check only says where they differ.

A file that defines a service also gets gRPC's stub; one that does not has none.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = "proto"
STUBS = Path("kraftlog", "rpc")


def generate(root: Path, target: Path) -> None:
    """Write the stubs of every proto under `root` below `target`, at their package's path."""
    protos = sorted(str(path) for path in (root / SOURCES).rglob("*.proto"))
    services = [path for path in protos if defines_service(Path(path).read_text())]
    run_protoc(root, protos, [f"--python_out={target}", f"--pyi_out={target}"])
    if services:
        run_protoc(root, services, [f"--grpc_python_out={target}"])


def defines_service(text: str) -> bool:
    return re.search(r"^service\s", text, re.MULTILINE) is not None


def run_protoc(root: Path, protos: list[str], outputs: list[str]) -> None:
    include = f"--proto_path={root / SOURCES}"
    command = [sys.executable, "-m", "grpc_tools.protoc", include, *outputs, *protos]
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        raise SystemExit(f"proto: protoc ended with {status}; its words are above")


def stubs(directory: Path) -> dict[str, bytes]:
    """The generated files in a directory, by name."""
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*_pb2*.py*"))}


def differences(root: Path) -> list[str]:
    """What is stale, missing or left over in the stubs that are checked in."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(root, Path(scratch))
        wanted = stubs(Path(scratch) / STUBS)
    found = stubs(root / STUBS)
    return [
        f"{STUBS / name} {verdict(name, wanted, found)}"
        for name in sorted(wanted | found)
        if wanted.get(name) != found.get(name)
    ]


def verdict(name: str, wanted: dict[str, bytes], found: dict[str, bytes]) -> str:
    if name not in found:
        return "is missing"
    return "differs" if name in wanted else "has no source"


def write(root: Path) -> None:
    for name in stubs(root / STUBS):
        (root / STUBS / name).unlink()
    generate(root, root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if stale")
    if not parser.parse_args().check:
        write(ROOT)
    elif wrong := differences(ROOT):
        raise SystemExit("\n".join([*wrong, "proto: run `make proto` and commit what it writes"]))


if __name__ == "__main__":
    main()
