from pathlib import Path

import pytest

from kraftctl.exit_codes import Conflict
from kraftctl.supervisor import Supervisor, locked
from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster


def test_a_cluster_has_one_supervisor(tmp_path: Path) -> None:
    with (
        locked(str(tmp_path)),
        pytest.raises(Conflict, match="runs already"),
        locked(str(tmp_path)),
    ):
        pass
    with locked(str(tmp_path)):
        pass


@pytest.mark.slow
def test_it_does_what_it_is_asked(cluster: LocalCluster) -> None:
    supervisor = Supervisor(cluster)
    described = supervisor.handle("ps", {})
    assert isinstance(described, dict)
    assert described["bootstrap"] == cluster.bootstrap
    with pytest.raises(ConfigError, match="cannot 'dance'"):
        supervisor.handle("dance", {})
    with pytest.raises(ConfigError, match="no node 'b9'"):
        supervisor.handle("kill", {"nodes": ["b9"]})
