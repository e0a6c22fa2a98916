import os
import socket
from pathlib import Path

import pytest

from kraftctl.exit_codes import Conflict
from kraftctl.supervisor import EPHEMERAL, Shape, Supervisor, locked, make_directory, supervise
from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster
from kraftlog.local.layout import BROKER, CONTROLLER, HOST, Layout, load


def test_a_cluster_has_one_supervisor(tmp_path: Path) -> None:
    with (
        locked(str(tmp_path)),
        pytest.raises(Conflict, match="runs already"),
        locked(str(tmp_path)),
    ):
        pass
    with locked(str(tmp_path)):
        pass


def test_a_wish_passes_to_another_process() -> None:
    shape = Shape("/d", 1, 2, "fast", {"a": "b"}, 19_000, combined=True, ephemeral=True)
    assert Shape.from_json(shape.to_json()) == shape


def test_a_directory_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Conflict, match="cannot be made: Not a directory"):
        make_directory(str(tmp_path / "file" / "below"))


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(Conflict, match="cannot be written to"):
        make_directory(str(tmp_path))
    tmp_path.chmod(0o700)


def made(directory: Path) -> Layout:
    """A cluster that is down: nobody has to start it to be refused."""
    directory.mkdir(exist_ok=True)
    layout = Layout(str(directory), [], {}, "fast", "id")
    for role in (CONTROLLER, BROKER, BROKER):
        layout.add(role, metrics=False)
    layout.save()
    return layout


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ({"controllers": 3}, "1 controllers, and 3 were asked for"),
        ({"brokers": 1}, "2 brokers, and 1 were asked for"),
        ({"ephemeral": True}, "--ephemeral is for a new cluster"),
        ({"combined": True}, "--combined is for a new cluster"),
    ],
)
def test_what_is_there_is_not_made_another(tmp_path: Path, shape: dict[str, int], why: str) -> None:
    made(tmp_path)
    with pytest.raises(Conflict, match=why):
        supervise(Shape(str(tmp_path), **shape), print)  # type: ignore[arg-type] # one of its keys
    assert load(str(tmp_path)) is not None


def test_a_port_that_is_taken_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    layout = made(tmp_path / "old")
    with socket.socket() as taken:
        taken.bind((HOST, layout.find("b2").port))
        taken.listen()
        with pytest.raises(Conflict, match="is taken, and b2 shall listen there"):
            supervise(Shape(str(tmp_path / "old")), print)
        new, base = tmp_path / "new", layout.find("b2").port - 1
        with pytest.raises(Conflict, match="is taken, and c1 shall listen there") as caught:
            supervise(Shape(str(new), 1, 1, base_port=base), print)
    assert "--any-port" in caught.value.hint
    assert load(str(new)) is None


def test_what_an_ephemeral_cluster_has_left_is_removed(tmp_path: Path) -> None:
    layout = made(tmp_path)
    (tmp_path / EPHEMERAL).write_text("")
    (tmp_path / "c1").mkdir()
    (tmp_path / "keep.txt").write_text("")
    with socket.socket() as taken:
        taken.bind((HOST, layout.find("c1").port))
        taken.listen()
        with pytest.raises(Conflict, match="is taken"):
            supervise(Shape(str(tmp_path), base_port=layout.find("c1").port - 1), print)
    assert sorted(os.listdir(tmp_path)) == ["keep.txt", "supervisor.lock"]


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
