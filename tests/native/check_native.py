"""Run the tests of the codec with its C code under the address and undefined-behaviour sanitizers.

A copy of the sources is built in a temporary directory, so that the extension in use stays as it
is. `make check-native` calls this; the exit status is 77 where a compiler or sanitizer is missing.
HYPOTHESIS_PROFILE says how much is tried, as always.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
COPIED = ("kraftlog", "tests", "pyproject.toml", "setup.py")
TESTS = ("codec", "record_batch", "record_batch_damage", "arrow", "partitioner")
SANITIZERS = "-fsanitize=address,undefined"
CFLAGS = f"{SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer -g -Wall -Wextra -Werror"


class Skip(Exception):
    """Something is missing that is not ours to bring."""


def say(text: str) -> None:
    sys.stderr.write(f"check-native: {text}\n")


def find_compiler() -> str:
    names = str(sysconfig.get_config_var("CC") or "cc").split()
    found = shutil.which(names[0])
    if found is None:
        raise Skip(f"no compiler {names[0]!r}")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise Skip("Python's headers are not installed")
    return found


def find_library(compiler: str, name: str) -> str:
    """A sanitizer's library, which must be in the process before anything else is."""
    command = [compiler, f"-print-file-name={name}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if not os.path.isabs(answer) or not Path(answer).exists():
        raise Skip(f"{compiler} has no {name}")
    return str(Path(answer).resolve())


def copy_sources(target: Path) -> None:
    leave = shutil.ignore_patterns("*.so", "__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=leave)
        else:
            shutil.copy(source, target / name)


def build(target: Path) -> bool:
    """Whether there is an extension now that the sanitizers watch."""
    flags = {"CFLAGS": CFLAGS, "LDFLAGS": SANITIZERS}
    ran = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=target,
        env=os.environ | flags,
        capture_output=True,
        text=True,
        check=False,
    )
    built = list((target / "kraftlog").glob("_codec_native*.so"))
    # The extension is optional, so a build that failed says so only by what is not there.
    if not built:
        say(f"the extension does not build:\n{ran.stdout}{ran.stderr}")
        return False
    data = built[0].read_bytes()
    watched = b"__asan_report_load" in data and b"__ubsan_handle" in data
    if not watched:
        say("the extension was built without the sanitizers")
    return watched


def environment(preload: str) -> dict[str, str]:
    return os.environ | {
        "LD_PRELOAD": preload,
        # Python's own allocator would hide where an object ends.
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        # Python itself leaks at exit; test_nothing_leaks looks for leaks of ours.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "KRAFTLOG_CODEC": "native",
        "HYPOTHESIS_PROFILE": os.environ.get("HYPOTHESIS_PROFILE", "fast"),
    }


def loads_it(target: Path, preload: str) -> bool:
    """Whether the extension built here is the one that tests get: an installed one might serve."""
    script = "import kraftlog._codec_native as native; print(native.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=target,
        env=environment(preload),
        capture_output=True,
        text=True,
        check=False,
    )
    if Path(ran.stdout.strip()).parent == target / "kraftlog":
        return True
    say(f"the extension built does not load: {ran.stdout}{ran.stderr}")
    return False


def run_tests(target: Path, preload: str) -> int:
    paths = [f"tests/kraftlog/test_{name}.py" for name in TESTS]
    # With its usual capture pytest would take a sanitizer's last words with it.
    options = ["-q", "--capture=sys", "-p", "no:cacheprovider", "-k", "not pure"]
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.run(
        [*command, *paths], cwd=target, env=environment(preload), check=False
    ).returncode


def main() -> int:
    try:
        compiler = find_compiler()
        libraries = [find_library(compiler, name) for name in ("libasan.so", "libubsan.so")]
    except Skip as reason:
        say(f"skipped, {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="kraftlog-native-") as directory:
        copy_sources(Path(directory))
        target, preload = Path(directory).resolve(), ":".join(libraries)
        if not build(target) or not loads_it(target, preload):
            return 1
        return run_tests(target, preload)


if __name__ == "__main__":
    sys.exit(main())
