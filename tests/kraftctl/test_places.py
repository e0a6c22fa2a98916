from pathlib import Path

import pytest

from kraftctl.exit_codes import NotFound
from kraftctl.places import Places, bootstrap_of
from kraftlog.errors import ConfigError
from kraftlog.local.layout import BROKER, Layout


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places.of({"XDG_DATA_HOME": str(tmp_path / "d"), "XDG_CONFIG_HOME": str(tmp_path / "c")})


def make_cluster(places: Places, name: str) -> str:
    directory = Path(places.cluster(name))
    directory.mkdir(parents=True)
    layout = Layout(str(directory), [], {}, "fast", "id")
    member = layout.add(BROKER, metrics=False)
    layout.save()
    return member.address


def test_directories_are_where_the_desktop_has_them() -> None:
    places = Places.of({"HOME": "/somewhere"})
    assert places.data == "/somewhere/.local/share/kraftlog"
    assert places.config == "/somewhere/.config/kraftlog"


def test_the_current_cluster_is_remembered_and_forgotten(places: Places) -> None:
    assert places.clusters() == []
    make_cluster(places, "dev")
    places.set_current("dev")
    assert places.current == "dev"
    assert places.clusters() == ["dev"]
    places.forget_current("other")
    assert places.current == "dev"
    places.forget_current("dev")
    assert places.current is None


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", ".."])
def test_a_name_is_no_path(places: Places, name: str) -> None:
    with pytest.raises(ConfigError, match="cluster's name"):
        places.cluster(name)


def test_a_flag_wins_over_the_environment_and_that_over_what_is_current(places: Places) -> None:
    address = make_cluster(places, "dev")
    places.set_current("dev")
    assert bootstrap_of(places, {}) == address
    assert bootstrap_of(places, {"KRAFTCTL_BOOTSTRAP": "e:1"}) == "e:1"
    assert bootstrap_of(places, {"KRAFTCTL_BOOTSTRAP": "e:1"}, bootstrap="f:1") == "f:1"
    assert bootstrap_of(places, {"KRAFTCTL_BOOTSTRAP": "e:1"}, profile="local") == address


def test_profiles_come_from_a_file(places: Places) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        bootstrap_of(places, {}, profile="prod")
    Path(places.config).mkdir(parents=True)
    file = Path(places.config, "config.toml")
    file.write_text('[profiles.prod]\nbootstrap = "a:1,b:2"\n')
    assert bootstrap_of(places, {}, profile="prod") == "a:1,b:2"
    assert bootstrap_of(places, {"KRAFTCTL_PROFILE": "prod"}) == "a:1,b:2"
    with pytest.raises(NotFound, match=r"no \[profiles.test\]"):
        bootstrap_of(places, {}, profile="test")
    file.write_text("not toml")
    with pytest.raises(ConfigError, match="not TOML"):
        bootstrap_of(places, {}, profile="prod")


def test_without_any_cluster_it_says_how_to_get_one(places: Places) -> None:
    with pytest.raises(NotFound, match="kraftctl up"):
        bootstrap_of(places, {})
