"""The layers of .venv, with a real environment, a real pip and an index of one local wheel."""

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.tidy.source import ROOT

SCRIPT = ROOT / ".make" / "setup_venv.py"

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny-project"
version = "1"
dependencies = ["tiny{core}"]
[project.optional-dependencies]
spark = []
dev = []
"""

# An editable build that notes that it ran, and compiles unless told not to.
BACKEND = """
import os, pathlib, sysconfig, zipfile
def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    if "NO_NATIVE" not in os.environ:
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        pathlib.Path("kraftlog/_codec_native" + suffix).write_text("")
    name = "tiny_project-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        wheel.writestr("tiny_project-1.dist-info/METADATA",
                       "Metadata-Version: 2.1\\nName: tiny-project\\nVersion: 1\\n")
        wheel.writestr("tiny_project-1.dist-info/WHEEL",
                       "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("tiny_project-1.dist-info/RECORD", "")
    return name
"""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_venv", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


setup_venv = load()


class Project:
    """A directory with the real script and a package index of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.wheels = root / "wheels"
        for directory in (root / ".make", root / "kraftlog", self.wheels):
            directory.mkdir()
        shutil.copy(SCRIPT, root / ".make")
        (root / "backend.py").write_text(BACKEND)
        (root / "kraftlog" / "_codec_native.c").write_text("int one;\n")
        self.require("==1")
        self.add_wheel("1")
        self.add_wheel("2")

    def require(self, version: str) -> None:
        (self.root / "pyproject.toml").write_text(PYPROJECT.format(core=version))

    def add_wheel(self, version: str) -> None:
        about = f"tiny-{version}.dist-info"
        with zipfile.ZipFile(self.wheels / f"tiny-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny.py", f"VERSION = {version}\n")
            wheel.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n"
            )
            wheel.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{about}/RECORD", "")

    def run(self, *layers: str, **environment: str) -> subprocess.CompletedProcess[str]:
        index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        command = [sys.executable, str(self.root / ".make" / "setup_venv.py"), *layers]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **index, **environment},
        )

    def installed(self) -> str:
        command = [str(self.root / ".venv/bin/python"), "-c", "import tiny; print(tiny.VERSION)"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("project"))
    answer = project.run("core")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "core: about 25 MB" in answer.stdout
    yield project
    shutil.rmtree(project.root)


@pytest.mark.slow
def test_a_second_run_installs_nothing_and_needs_no_index(project: Project) -> None:
    (project.root / "pyproject.toml").touch()
    answer = project.run("core", PIP_FIND_LINKS=str(project.root / "nothing-here"))
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_changed_requirement_is_installed(project: Project) -> None:
    project.require("==2")
    assert project.run("core").returncode == 0
    assert project.installed() == "2"
    project.require("==1")
    assert project.run("core").returncode == 0
    assert project.installed() == "1"


@pytest.mark.slow
def test_a_failed_install_is_not_stamped(project: Project) -> None:
    project.require("==3")
    answer = project.run("core")
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1].startswith("setup: core could not be installed")
    assert project.run("core").returncode == 1
    project.require("==1")
    assert project.run("core").returncode == 0


@pytest.mark.slow
def test_the_native_codec_is_built_again_when_its_source_changes(project: Project) -> None:
    (project.root / "kraftlog" / "_codec_native.c").write_text("int two;\n")
    assert "editable" in project.run("core").stdout
    assert project.run("core").stdout == ""
    (built,) = (project.root / "kraftlog").glob("_codec_native.*.so")
    built.unlink()
    assert "editable" in project.run("core").stdout
    assert built.exists()


@pytest.mark.slow
def test_an_old_native_codec_does_not_outlive_a_build_that_fails(project: Project) -> None:
    (project.root / "kraftlog" / "_codec_native.c").write_text("int three;\n")
    answer = project.run("core", NO_NATIVE="1")
    assert answer.returncode == 0
    assert "pure Python serves, slower" in answer.stdout
    assert not list((project.root / "kraftlog").glob("_codec_native.*.so"))


@pytest.mark.slow
def test_a_broken_environment_is_made_anew(project: Project) -> None:
    python = project.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    answer = project.run("core")
    assert answer.returncode == 0
    assert "setup: .venv is broken or was moved" in answer.stdout
    assert project.installed() == "1"


def test_an_environment_without_pip_does_not_count(tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    assert setup_venv.probe(venv) is None
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    assert setup_venv.probe(venv) is None


def test_without_ensurepip_one_line_says_what_to_install(tmp_path: Path) -> None:
    project = Project(tmp_path)
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "ensurepip.py").write_text("raise ImportError")
    answer = project.run("core", PYTHONPATH=str(blocked), PATH=str(blocked))
    assert (answer.returncode, answer.stdout) == (1, "")
    (line,) = answer.stderr.splitlines()
    assert line.endswith("install python3-venv, uv or virtualenv and run make again")
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("tool", ["uv", "virtualenv"])
def test_without_ensurepip_another_tool_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    script = tmp_path / tool
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.delitem(sys.modules, "ensurepip", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert setup_venv.maker(tmp_path / ".venv")[0] == str(script)


def test_an_unknown_layer_is_refused() -> None:
    with pytest.raises(SystemExit):
        list(setup_venv.layers_of(["cor"]))
    assert list(setup_venv.layers_of(["dev"])) == ["core", "dev"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\n', 17),
        ('java version "1.8.0_402"\n', 8),
        ('openjdk version "21" 2023-09-19\n', 21),
        ("command not found", 0),
    ],
)
def test_java_versions(text: str, version: int) -> None:
    assert setup_venv.java_version(text) == version


def fake_java(directory: Path, version: str) -> None:
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)


def test_java_is_looked_for_where_spark_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "new", "17.0.1")
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert setup_venv.machine_has_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert not setup_venv.machine_has_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert not setup_venv.machine_has_java()


def test_the_packaged_java_is_run_without_the_module_it_lacks(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    script = tmp_path / "java"
    script.write_text(setup_venv.JAVA_SCRIPT.format(java=runtime))
    for path in (runtime, script):
        path.chmod(0o755)
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "*"]
    answer = subprocess.run([script, *given], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["-cp", "a b", "Main", "*"]
