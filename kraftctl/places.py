"""Where local clusters live, and which cluster a command means.

    $XDG_DATA_HOME/kraftlog/clusters/NAME/   a cluster made by `up`, or a link to where --data says
    $XDG_DATA_HOME/kraftlog/current          the one that commands mean by default
    $XDG_DATA_HOME/kraftlog/undo/            plans that undo a move of partitions
    $XDG_CONFIG_HOME/kraftlog/config.toml    [profiles.NAME] bootstrap = "host:port,..."

A flag wins over the environment (KRAFTCTL_BOOTSTRAP, KRAFTCTL_PROFILE), that over what is current.
`local` is the name of whichever local cluster is current.
"""

import itertools
import os
import re
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from kraftctl.exit_codes import Conflict, NotFound
from kraftlog.errors import ConfigError
from kraftlog.local.layout import BROKER, CONTROLLER, FILE, Layout, load

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

LOCAL = "local"
DEFAULT_CLUSTER = "dev"


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of one user."""

    data: str
    config: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Places":
        home = environment.get("HOME") or os.path.expanduser("~")
        data = environment.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
        config = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        return cls(os.path.join(data, "kraftlog"), os.path.join(config, "kraftlog"))

    def cluster(self, name: str) -> str:
        """The directory of a local cluster."""
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} cannot be a cluster's name", hint="letters, digits, - and _"
            )
        return os.path.join(self.data, "clusters", name)

    def settle(self, name: str, data: str) -> None:
        """Have a local cluster live in a directory of the user's, to which ours is a link then."""
        ours, theirs = self.cluster(name), os.path.realpath(data)
        if os.path.realpath(ours) == theirs:
            return
        if os.path.lexists(ours):
            raise Conflict(
                f"{name} lives in {os.path.realpath(ours)}, not in {theirs}",
                hint="another one: --name NAME; or remove this one: kraftctl purge",
            )
        os.makedirs(theirs, exist_ok=True)
        os.makedirs(os.path.dirname(ours), exist_ok=True)
        os.symlink(theirs, ours, target_is_directory=True)

    def clusters(self) -> list[str]:
        """The names of all local clusters."""
        root = os.path.join(self.data, "clusters")
        try:
            names = sorted(os.listdir(root))
        except OSError:
            return []
        return [name for name in names if os.path.exists(os.path.join(root, name, FILE))]

    @property
    def current(self) -> str | None:
        """The local cluster that commands mean by default."""
        try:
            with open(os.path.join(self.data, "current"), encoding="utf-8") as file:
                return file.read().strip() or None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def set_current(self, name: str) -> None:
        os.makedirs(self.data, exist_ok=True)
        path = os.path.join(self.data, "current")
        with open(f"{path}.tmp", "w", encoding="utf-8") as file:
            file.write(name + "\n")
        os.replace(f"{path}.tmp", path)

    def new_undo(self, what: str) -> str:
        """The path of a file that is not there yet, for what undoes a change."""
        directory = os.path.join(self.data, "undo")
        os.makedirs(directory, exist_ok=True)
        stamp = f"{what}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        numbers = (f"-{number}" if number else "" for number in itertools.count())
        paths = (os.path.join(directory, f"{stamp}{number}.json") for number in numbers)
        return next(path for path in paths if not os.path.exists(path))

    def forget_current(self, name: str) -> None:
        if self.current == name:
            os.unlink(os.path.join(self.data, "current"))


def bootstrap_of(
    places: Places,
    environment: Mapping[str, str],
    *,
    bootstrap: str | None = None,
    profile: str | None = None,
) -> str:
    """The addresses that a command shall dial."""
    if bootstrap:
        return checked_addresses(bootstrap, "-b")
    if environment.get("KRAFTCTL_BOOTSTRAP") and not profile:
        return checked_addresses(environment["KRAFTCTL_BOOTSTRAP"], "KRAFTCTL_BOOTSTRAP")
    name = profile or environment.get("KRAFTCTL_PROFILE") or LOCAL
    if name != LOCAL:
        return _from_file(places, name)
    return local_bootstrap(places, _current(places))


def checked_addresses(text: str, source: str) -> str:
    """The same, if it is HOST:PORT, or more of these with commas between."""
    for address in text.split(","):
        check_address(address.strip(), source)
    return text


def check_address(text: str, source: str) -> None:
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16
    is_host = host.startswith("[") if ":" in host else host
    if not is_host or not is_port:
        raise ConfigError(f"{source}: {text!r} is no address", hint="it looks like 127.0.0.1:19101")


def controllers_of(
    places: Places,
    environment: Mapping[str, str],
    *,
    bootstrap: str | None = None,
    profile: str | None = None,
) -> tuple[str, ...]:
    """The controllers of a local cluster, which has written them down; of others none."""
    if bootstrap or (environment.get("KRAFTCTL_BOOTSTRAP") and not profile):
        return ()
    if (profile or environment.get("KRAFTCTL_PROFILE") or LOCAL) != LOCAL:
        return ()
    layout = layout_of(places, _current(places))
    return tuple(member.address for member in layout.of_role(CONTROLLER))


def local_bootstrap(places: Places, cluster: str) -> str:
    layout = layout_of(places, cluster)
    return ",".join(member.address for member in layout.of_role(BROKER))


def _current(places: Places) -> str:
    if places.current is None:
        raise NotFound(
            "there is no local cluster", hint="start one: kraftctl up -d, or say -b HOST:PORT"
        )
    return places.current


def layout_of(places: Places, cluster: str) -> Layout:
    layout = load(places.cluster(cluster))
    if layout is None:
        raise no_cluster(places, cluster)
    return layout


def no_cluster(places: Places, cluster: str) -> NotFound:
    others = ", ".join(places.clusters())
    hint = f"there are {others}" if others else "start one: kraftctl up -d"
    return NotFound(f"there is no local cluster {cluster!r}", hint=hint)


def _from_file(places: Places, name: str) -> str:
    path = os.path.join(places.config, "config.toml")
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except FileNotFoundError:
        raise NotFound(
            f"there is no profile {name!r}: {path} does not exist",
            hint=f'write there: [profiles.{name}] and below it: bootstrap = "host:port"',
        ) from None
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    profiles = document.get("profiles", {})
    profile = profiles.get(name) if isinstance(profiles, dict) else None
    found = profile.get("bootstrap") if isinstance(profile, dict) else None
    if not isinstance(found, str):
        raise NotFound(
            f"{path} has no [profiles.{name}] with bootstrap",
            hint=f'write: [profiles.{name}] and below it: bootstrap = "host:port"',
        )
    return found
