import json
import socket
from pathlib import Path

import pytest

from kraftlog.errors import ConfigError
from kraftlog.local.layout import (
    BROKER,
    CLIENTS,
    CONTROLLER,
    LOCK,
    PORTS,
    Layout,
    Member,
    free_port,
    is_locked,
    load,
    read_cluster_id,
)
from storage.files import OsLock


def layout(path: Path) -> Layout:
    made = Layout(str(path), [], {"min.insync.replicas": "2"}, "fast")
    for role in (CONTROLLER, BROKER, BROKER):
        made.add(role, metrics=role == BROKER)
    return made


def test_nodes_have_names_ids_and_ports_of_their_own(tmp_path: Path) -> None:
    made = layout(tmp_path)
    assert [(each.name, each.node_id) for each in made.members] == [
        ("c1", 101),
        ("b1", 1),
        ("b2", 2),
    ]
    ports = [each.port for each in made.members]
    ports += [each.metrics_port for each in made.of_role(BROKER) if each.metrics_port]
    assert len(set(ports)) == 5
    assert set(ports) <= set(PORTS)
    assert made.find("b2").address == f"127.0.0.1:{made.find('b2').port}"
    with pytest.raises(ConfigError, match="there are c1, b1, b2"):
        made.find("b3")


def test_a_cluster_can_be_found_again(tmp_path: Path) -> None:
    made = layout(tmp_path)
    made.cluster_id = "the id"
    made.save()
    found = load(str(tmp_path))
    assert found is not None
    assert (found.members, found.config, found.profile, found.cluster_id) == (
        made.members,
        made.config,
        "fast",
        "the id",
    )
    assert load(str(tmp_path / "elsewhere")) is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"members": [{}], "config": {}}'])
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ConfigError, match="does not describe a local cluster"):
        load(str(tmp_path))


def test_paths_and_routes(tmp_path: Path) -> None:
    made = layout(tmp_path)
    b1 = made.find("b1")
    assert made.data_path(b1) == str(tmp_path / "b1")
    assert made.log_path(b1) == str(tmp_path / "b1.log")
    made.write_resolve(CLIENTS, {"a:1": "b:2"})
    assert json.loads((tmp_path / "resolve" / "clients.json").read_text()) == {"a:1": "b:2"}
    made.write_resolve(CLIENTS, {})
    assert json.loads(Path(made.resolve_path(CLIENTS)).read_text()) == {}


def test_a_port_that_is_taken_is_not_given() -> None:
    with socket.socket() as taken:
        port = free_port(set())
        taken.bind(("127.0.0.1", port))
        assert free_port(set()) != port
    with pytest.raises(ConfigError, match="no port is free"):
        free_port(set(PORTS))


def test_a_directory_tells_its_cluster_once_it_is_formatted(tmp_path: Path) -> None:
    assert read_cluster_id(str(tmp_path)) is None
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    assert read_cluster_id(str(tmp_path)) == "abc"


def test_a_directory_that_a_process_owns_is_locked(tmp_path: Path) -> None:
    assert not is_locked(str(tmp_path))
    with OsLock(str(tmp_path / LOCK)):
        assert is_locked(str(tmp_path))
    assert not is_locked(str(tmp_path))


def test_members_are_values() -> None:
    assert Member("b1", BROKER, 1, 9) == Member("b1", BROKER, 1, 9)
