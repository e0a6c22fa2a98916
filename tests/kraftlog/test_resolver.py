import json
import os
from pathlib import Path

import pytest

from kraftlog.errors import ConfigError
from kraftlog.resolver import FileResolver, resolver


def test_without_a_file_every_address_stands_for_itself() -> None:
    assert resolver({})("10.0.0.2:9101") == "10.0.0.2:9101"


def test_the_file_of_the_environment_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"a:1": "b:2"}))
    resolve = resolver({"KRAFTLOG_RESOLVE": str(path)})
    assert resolve("a:1") == "b:2"
    assert resolve("c:3") == "c:3"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text('{"a:1": "b:2"}')
    resolve = FileResolver(str(path))
    path.write_text('{"a:1": "cut:1"}')
    assert resolve("a:1") == "cut:1"


def test_a_new_file_of_the_same_size_is_noticed(tmp_path: Path) -> None:
    path, other = tmp_path / "map.json", tmp_path / "new.json"
    path.write_text('{"a:1": "b:2"}')
    resolve = FileResolver(str(path))
    other.write_text('{"a:1": "c:3"}')
    os.replace(other, path)
    assert resolve("a:1") == "c:3"


def test_a_file_that_breaks_leaves_the_old_addresses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "map.json"
    path.write_text('{"a:1": "b:2"}')
    resolve = FileResolver(str(path))
    path.write_text("{")
    assert resolve("a:1") == "b:2"
    path.unlink()
    assert resolve("a:1") == "b:2"
    assert "last good addresses" in caplog.text


@pytest.mark.parametrize("text", ["", "[]", '{"a:1": 2}', "nonsense", '"x"', "[" * 100_000])
def test_what_is_no_map_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"map\.json is not a map of addresses"):
        FileResolver(str(path))


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"KRAFTLOG_RESOLVE names .*gone, which cannot be read"):
        resolver({"KRAFTLOG_RESOLVE": str(tmp_path / "gone")})
