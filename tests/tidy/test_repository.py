"""Files that belong together, and that a missing piece is noticed."""

import importlib
import tomllib
from types import ModuleType

import pytest

from tests.tidy import repository, source

# The rows of docs/REQUIREMENTS.md that are done; each issue adds its own.
ROWS_DUE = (
    *(f"R{number}" for number in range(1, 35)),
    *("R37", "R41", "R42", "R43", "R49"),
)

# What `import <package>` offers. A name here is a promise to users: think before adding one.
EXPORTED: dict[str, set[str]] = {
    "brokers": set(),
    "chaos": set(),
    "kraftctl": set(),
    "kraftlog": {
        "Admin",
        "ClusterEvent",
        "ClusterHealth",
        "GREEN",
        "RED",
        "YELLOW",
        "ConfigResource",
        "Consumer",
        "ConsumerRecord",
        "DeliveryFuture",
        "FlushResult",
        "KraftError",
        "NewTopic",
        "Offset",
        "OffsetRange",
        "PartitionInfo",
        "Producer",
        "Record",
        "RecordMetadata",
        "TopicPartition",
        "Uuid",
    },
    "metadata_log": set(),
    "quorum": set(),
    "spark_connector": {"session"},
    "storage": set(),
}

TARGETS = {
    "help",
    "setup",
    "demo",
    "test",
    "test-fast",
    "check",
    "check-native",
    "fix",
    "proto",
    "sim",
    "mutants",
    "soak",
    "chaos",
    "bench",
    "clean",
}


def read(path: str) -> str:
    return (source.ROOT / path).read_text()


def existing_packages() -> list[str]:
    return [name for name in source.PACKAGES if (source.ROOT / name / "__init__.py").exists()]


def test_every_module_has_a_test_file() -> None:
    untested = repository.untested_modules(source.files())
    assert not untested, "\n".join(untested)


def test_a_module_without_a_test_file_is_found() -> None:
    paths = ["storage/log.py", "quorum/core/raft.py", ".make/proto.py"]
    assert repository.untested_modules(paths) == paths
    tests = ["tests/storage/test_log.py", "tests/quorum/core/test_raft.py"]
    assert repository.untested_modules([*paths, *tests, "tests/make/test_proto.py"]) == []
    exempt = ["storage/__init__.py", "kraftlog/_check.py", "setup.py", "tests/x.py"]
    exempt += ["kraftlog/rpc/common_pb2.py"]
    assert repository.untested_modules(exempt) == []


def test_every_row_due_is_named_by_a_test() -> None:
    tests = source.written_sources()
    named = {path: text for path, text in tests.items() if path.startswith("tests/")}
    others = {path: text for path, text in named.items() if not path.startswith("tests/tidy/")}
    unproven = repository.unproven_rows(ROWS_DUE, read("docs/REQUIREMENTS.md"), others)
    assert not unproven, "\n".join(unproven)


def test_a_row_without_a_test_is_found() -> None:
    tests = {"tests/x.py": "# R2: proves it\nR3 = 1"}
    assert repository.unproven_rows(["R2", "R3", "R4"], "- R2 ...\n- R3 ...", tests) == [
        "R4 is not in the requirements",
        "R3 is named by no test",
        "R4 is named by no test",
    ]


def test_make_has_every_verb() -> None:
    missing = TARGETS - repository.make_targets(read("Makefile"))
    assert not missing, f"the Makefile lacks {sorted(missing)}"


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_documents_name_real_targets(document: str) -> None:
    unknown = repository.unknown_targets(read(document), read("Makefile"))
    assert not unknown, f"{document} says make {' '.join(unknown)}"


def test_a_command_that_does_not_exist_is_found() -> None:
    makefile = "test: setup ## all\nsetup:\nX := 1\n"
    document = (
        "make love\n```sh\n$ make setup test\ncd x && make -k war SEED=1  # make peace\n```\n"
    )
    assert repository.unknown_targets(document, makefile) == ["war"]


def test_the_import_contract_covers_every_package() -> None:
    listed = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["root_packages"]
    assert sorted(listed) == sorted(existing_packages())


def test_packages_offer_what_is_promised() -> None:
    packages = [importlib.import_module(name) for name in existing_packages()]
    offered = {package.__name__: repository.public_names(package) for package in packages}
    assert offered == EXPORTED


def test_a_new_name_is_noticed() -> None:
    module = ModuleType("module")
    vars(module).update(Producer=int, _private=int, submodule=ModuleType("submodule"))
    assert repository.public_names(module) == {"Producer"}
    vars(module)["__all__"] = ["Consumer"]
    assert repository.public_names(module) == {"Consumer"}


def test_every_configuration_key_is_read() -> None:
    ours = {
        path: text
        for path, text in source.written_sources().items()
        if path.partition("/")[0] in source.PACKAGES
    }
    unread = repository.unread_keys(ours)
    assert not unread, f"nothing reads {unread}"


def test_a_key_that_nothing_reads_is_found() -> None:
    declared = "A_MS = Key(\nB: Key[int] = Key(\nC_MS = _of_topic(\nNO_KEY = 3\n"
    reads = {"storage/x.py": "config[keys.A_MS]", "brokers/y.py": "XC_MS"}
    assert repository.unread_keys({"kraftlog/x_keys.py": declared} | reads) == ["B", "C_MS"]
