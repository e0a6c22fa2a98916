"""A cluster that tests share: none of them may break it for the others."""

from collections.abc import Mapping
from typing import NoReturn

from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster
from kraftlog.local.cluster import Options
from kraftlog.local.faults import Nodes


class SharedCluster(LocalCluster):
    """Refuses whatever another test would notice."""

    def kill(self, name: str) -> NoReturn:
        _refuse(f"kill {name}")

    def pause(self, name: str) -> NoReturn:
        _refuse(f"pause {name}")

    def stop_node(self, name: str) -> NoReturn:
        _refuse(f"stop_node {name}")

    def restart(self, name: str) -> NoReturn:
        _refuse(f"restart {name}")

    def stop(self) -> NoReturn:
        _refuse("stop")

    def add_broker(self, config: Options | None = None) -> NoReturn:
        _refuse(f"add_broker {config or ''}")

    def reroute(self, name: str, routes: Mapping[str, str]) -> NoReturn:
        _refuse(f"reroute {name} {dict(routes)}")

    def partition(self, one: Nodes, other: Nodes) -> NoReturn:
        _refuse(f"partition {one} {other}")

    def isolate(self, nodes: Nodes) -> NoReturn:
        _refuse(f"isolate {nodes}")


def _refuse(what: str) -> NoReturn:
    raise ConfigError(
        f"{what.rstrip()}: other tests use this cluster too",
        hint="ask for one of your own: @pytest.mark.kraft(faults=True)",
    )
